//go:build !linux

package attach

import (
	"context"
	"net"
)

func (c *Client) connect(context.Context, Target, *memory) (net.Conn, error) {
	return nil, Unsupported
}

func exchange(context.Context, net.Conn, []byte) ([]byte, error) { return nil, Unsupported }
