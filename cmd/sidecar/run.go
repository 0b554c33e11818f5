package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/jvm-sidecar/sidecar/collectors"
	"github.com/jvm-sidecar/sidecar/internal/web"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	toolkitflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"
	"go.yaml.in/yaml/v3"
)

// DefaultPort is where Prometheus finds a sidecar.
const DefaultPort = ":10404"

func addRun(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("run", "Watch the servers of this machine and serve their metrics.").Default()
	d := &daemon{}
	cmd.Flag("config.file", "Settings file. Without one every default stands.").StringVar(&d.configFile)
	cmd.Flag("storage.path", "Where positions and counters are kept across restarts; nothing is written elsewhere. For root /var/lib/sidecar, for others $XDG_STATE_HOME/sidecar or ~/.local/state/sidecar.").Default(defaultStorage()).StringVar(&d.storage)
	cmd.Flag("path.procfs", "The proc file system to look at.").Default("/proc").StringVar(&d.procfs)
	cmd.Flag("web.enable-lifecycle", "Allow a reload of the settings by POST to /-/reload.").BoolVar(&d.lifecycle)
	d.web = toolkitflag.AddFlags(cmd, DefaultPort)
	d.logging = &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat()}
	cmd.Flag("log.level", "Only log messages of this level or above: debug, info, warn, error.").Default("info").SetValue(d.logging.Level)
	cmd.Flag("log.format", "Form of the log messages: logfmt or json.").Default("logfmt").SetValue(d.logging.Format)
	return cmd.FullCommand(), d.run
}

// daemon is what `sidecar run` was told.
type daemon struct {
	configFile, storage, procfs string
	lifecycle                   bool
	web                         *toolkit.FlagConfig
	logging                     *promslog.Config
}

// defaultStorage is the state folder of the user that runs the sidecar.
func defaultStorage() string {
	if os.Geteuid() == 0 {
		return "/var/lib/sidecar"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "sidecar")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return homelessStorage()
	}
	return filepath.Join(home, ".local", "state", "sidecar")
}

// homelessStorage is the state folder of a user without a home, as in a container.
// Its name is one that anybody could guess: lockStorage looks whose it is.
func homelessStorage() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("sidecar-%d", os.Geteuid()))
}

func (d *daemon) run(s streams) error {
	d.logging.Writer = s.err
	log := promslog.New(d.logging)
	if ours {
		relaxTimers(log)
	}
	cfg, err := settingsInForce(d.configFile)
	if err != nil {
		return err
	}
	if _, err := hasUsers(*d.web.WebConfigFile); err != nil {
		return err
	}
	rawLines := usersOnly(*d.web.WebConfigFile)
	// Whatever may be wrong with the way in is found before anything is started
	// or written: a second sidecar, started by mistake, must not touch the state
	// of the first.
	listeners, err := d.listen()
	if err != nil {
		return err
	}
	unlock, err := lockStorage(d.storage)
	if err != nil {
		return err
	}
	defer unlock()
	alerts, err := d.startAlerting(cfg, log)
	if err != nil {
		return err
	}
	defer alerts.close()
	monitor, err := collectors.New(*cfg, collectors.Options{
		Procfs: d.procfs, Storage: d.storage, Version: version.Version, Log: log,
		Sets: alerts.sets(), Published: alerts.take,
	})
	if err != nil {
		return err
	}
	alerts.dumps.Store(newAlertDumps(monitor, log))
	var reloading sync.Mutex // a signal and a POST may come at once
	reload := func() error {
		reloading.Lock()
		defer reloading.Unlock()
		return d.reload(monitor, alerts, log)
	}
	options := web.Options{RawLines: rawLines, API: alerts.api(), Log: log}
	if d.lifecycle {
		options.Reload = reload
	}
	server := &http.Server{Handler: web.Handler(monitor, options), ReadHeaderTimeout: 10 * time.Second}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- monitor.Run(ctx) }()
	served := make(chan error, 1)
	go func() {
		if len(listeners) > 0 {
			served <- toolkit.ServeMultiple(listeners, server, d.web, log)
			return
		}
		served <- toolkit.ListenAndServe(server, d.web, log)
	}()
	hup := hangups()
	told := make(chan struct{})
	go func() { notifySystemd(ctx, monitor.Status, log); close(told) }()
	defer func() { stop(); <-told }()

	log.Info("sidecar started", "version", version.Version, "storage", d.storage, "listen", *d.web.WebListenAddresses)
	for {
		select {
		case <-hup:
			reload() // it says itself how it went
		case err := <-served:
			// A port that is taken must end the program, but what was counted
			// is still saved.
			stop()
			<-watched
			return fmt.Errorf("serve: %w", err)
		case err := <-watched:
			return errors.Join(err, d.shutdown(server, log))
		}
	}
}

// listen opens the addresses and checks the web config. Sockets that systemd
// hands over, and vsock, are left to the toolkit: then there are none.
func (d *daemon) listen() (listeners []net.Listener, err error) {
	if err := toolkit.Validate(*d.web.WebConfigFile); err != nil {
		return nil, fmt.Errorf("web.config.file %s: %w", *d.web.WebConfigFile, err)
	}
	if *d.web.WebSystemdSocket {
		return nil, nil
	}
	for _, address := range *d.web.WebListenAddresses {
		if strings.HasPrefix(address, "vsock://") {
			return nil, nil
		}
	}
	for _, address := range *d.web.WebListenAddresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			for _, open := range listeners {
				open.Close()
			}
			return nil, fmt.Errorf("web.listen-address: %w", err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// shutdown lets scrapes that are under way finish.
func (d *daemon) shutdown(server *http.Server, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	log.Info("sidecar stopped")
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// reload reads the settings again. A mistake in them changes nothing, and is in
// the log whoever asked: the answer to a POST may have gone to a script.
func (d *daemon) reload(m *collectors.Monitor, alerts *alerting, log *slog.Logger) error {
	cfg, err := settingsInForce(d.configFile)
	if err == nil {
		err = alerts.reload(cfg)
	}
	m.Reloaded(err == nil)
	if err != nil {
		log.Error("settings not reloaded, the old ones stay in force", "err", err)
		return err
	}
	m.Reload(*cfg)
	log.Info("settings reloaded", "file", d.configFile)
	return nil
}

// usersOnly says at each call whether only users come through. The way in reads
// the web config for each request: what it said at the start may be over.
func usersOnly(webConfig string) func() bool {
	return func() bool {
		users, err := hasUsers(webConfig)
		return err == nil && users
	}
}

// hasUsers says whether the web config names users: then whoever comes through
// is one of them, and may read raw log lines from anywhere.
func hasUsers(webConfig string) (bool, error) {
	if webConfig == "" {
		return false, nil
	}
	data, err := os.ReadFile(webConfig)
	if err != nil {
		return false, fmt.Errorf("web.config.file: %w", err)
	}
	var c struct {
		Users map[string]string `yaml:"basic_auth_users"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("%s: %w", webConfig, err)
	}
	return len(c.Users) > 0, nil
}
