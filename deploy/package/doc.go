// Package tools names the tool that makes the Debian package, in a module of its
// own so that its many modules stay out of the product's. nfpm is held at 2.45.0:
// from 2.46 on it needs modules that the public proxy does not serve.
//
// Its tests look at files outside of this module: run them with -count=1.
package tools
