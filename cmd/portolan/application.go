package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/servicepoint/application/nameserver"
	"portolan/internal/wire/checkin"
)

// socketDescriptor is the file descriptor of the socket that a service point passes to an application.
const socketDescriptor = 3

type applicationCommand struct {
	Name   string `arg:"" help:"The application."`
	Engine string `help:"The name server." enum:"portolan,bind" default:"portolan"`
	bindFlags
}

// bindFlags specify the BIND server to configure.
type bindFlags struct {
	BindConfig    string `help:"The BIND configuration file to write." default:"/etc/bind/named.conf" type:"path" placeholder:"FILE"`
	BindZones     string `help:"The directory for zone files." default:"/var/cache/bind/portolan" type:"path" placeholder:"DIR"`
	BindControl   string `help:"The address of the BIND control channel (rndc), used to reload changes." default:"127.0.0.1:953" placeholder:"ADDR"`
	BindOptions   string `help:"A file with additional statements for the BIND options block." type:"existingfile" placeholder:"FILE"`
	BindOverwrite bool   `help:"Overwrite a BIND configuration that Portolan did not write."`
}

// bind returns the settings of BIND from the flags.
func (f *bindFlags) bind() (nameserver.Bind, error) {
	control, err := netip.ParseAddrPort(f.BindControl)
	if err != nil || !control.Addr().IsLoopback() {
		return nameserver.Bind{}, usageError{fmt.Errorf("--bind-control: %q is not an address of this machine with a port, such as 127.0.0.1:953",
			f.BindControl)}
	}
	return nameserver.Bind{Config: f.BindConfig, Zones: f.BindZones, Control: control, Options: f.BindOptions, Overwrite: f.BindOverwrite}, nil
}

// args returns the flags as arguments of the application command.
func (f *bindFlags) args() []string {
	args := []string{"--engine", "bind", "--bind-config", f.BindConfig, "--bind-zones", f.BindZones, "--bind-control", f.BindControl}
	if f.BindOptions != "" {
		args = append(args, "--bind-options", f.BindOptions)
	}
	if f.BindOverwrite {
		args = append(args, "--bind-overwrite")
	}
	return args
}

// Run runs an application until the service point ends it.
func (c *applicationCommand) Run(s *session) error {
	if err := noNewPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	state, err := application.EnterData()
	if err != nil {
		return fmt.Errorf("open the folder for data: %w", err)
	}
	for _, kind := range all.Kinds(state) {
		if kind.Name != c.Name {
			continue
		}
		if c.Engine == "bind" && kind.Name == checkin.Authority {
			b, err := c.bind()
			if err != nil {
				return err
			}
			kind = nameserver.BindKind(b)
		}
		file := os.NewFile(socketDescriptor, "socket")
		socket, err := net.FileListener(file)
		if err != nil {
			return usageError{fmt.Errorf("only portolan agent can start an application, because it passes a socket: %w", err)}
		}
		if err := file.Close(); err != nil {
			return err
		}
		return application.Serve(s.ctx, kind, socket, s.log)
	}
	return usageError{fmt.Errorf("application %q does not exist", c.Name)}
}

// applicationProgram returns the command that runs an application.
func applicationProgram() (program []string, err error) {
	if runtime.GOOS == "linux" { // works even if the file was replaced, or if another user cannot reach it
		return []string{"/proc/self/exe", "application"}, nil
	}
	path, err := os.Executable()
	return []string{path, "application"}, err
}

func applicationVersions() map[string]string {
	versions := map[string]string{}
	for _, kind := range all.Kinds("") {
		versions[kind.Name] = kind.Version
	}
	return versions
}
