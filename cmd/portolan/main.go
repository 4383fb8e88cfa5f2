// Command portolan is the whole product: the manager, the service point, and the tools around them.
// This package parses the command line and wires the parts together; it does nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // for maintenance windows, on machines without time zones

	_ "golang.org/x/crypto/x509roots/fallback" // where the machine has no authorities to trust, as in a container

	"github.com/alecthomas/kong"

	"portolan/internal/client/cli"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = ""

// commands is the command line. Every flag can be given as an environment variable PORTOLAN_… too.
type commands struct {
	LogFormat string `help:"The format of log lines on standard error: ${enum}." enum:"text,json" default:"text"`
	LogLevel  string `help:"The minimum log level: debug, info, warn or error. Default: the level of the manager's settings; info for other commands." enum:"debug,info,warn,error," default:""`

	Demo        demoCommand        `cmd:"" example:"portolan demo --data ./demo" group:"Get started" help:"Start a manager and service points with sample data on loopback."`
	Serve       serveCommand       `cmd:"" group:"Run a manager" help:"Run a manager: the address API, the fleet API and the check-in listener."`
	Agent       agentCommand       `cmd:"" group:"Fleet" help:"Run a service point: enrol, check in, probe the network, show diagnostics."`
	List        listCommand        `cmd:"" group:"Resources" help:"List resources of any type, such as networks, zones or users."`
	Get         getCommand         `cmd:"" group:"Resources" help:"Show resources."`
	Create      createCommand      `cmd:"" group:"Resources" help:"Create a resource."`
	Set         setCommand         `cmd:"" group:"Resources" help:"Change fields of a resource."`
	Delete      deleteCommand      `cmd:"" group:"Resources" help:"Delete a resource and everything below it, in steps."`
	Assign      assignCommand      `cmd:"" group:"Resources" help:"Assign the next free addresses of a network or the next free networks of a block."`
	Next        nextCommand        `cmd:"" group:"Resources" help:"Show the next free addresses or networks without assigning them."`
	Split       splitCommand       `cmd:"" group:"Resources" help:"Split a block or a network."`
	Merge       mergeCommand       `cmd:"" group:"Resources" help:"Merge blocks, networks or ranges into one."`
	Move        moveCommand        `cmd:"" group:"Resources" help:"Move a resource and its contents."`
	Search      searchCommand      `cmd:"" example:"portolan search 10.3.4.20" group:"Resources" help:"Find resources by an address, a prefix, a hardware address, a name or a part of one."`
	History     historyCommand     `cmd:"" group:"Resources" help:"Show the changes of each transaction, with user and values."`
	Undo        undoCommand        `cmd:"" group:"Resources" help:"Undo a transaction."`
	Apply       applyCommand       `cmd:"" group:"Documents and files" help:"Create, update and delete resources to match files, after a preview."`
	Export      exportCommand      `cmd:"" group:"Documents and files" help:"Export resources as documents for apply, and zones as zone files."`
	Import      importCommand      `cmd:"" group:"Documents and files" help:"Import data from files and from other systems."`
	Batch       batchCommand       `cmd:"" example:"portolan batch changes.json --dry-run" group:"Documents and files" help:"Execute all changes of a file in one transaction."`
	Login       loginCommand       `cmd:"" group:"Get started" help:"Sign in at a manager and store it as the current context."`
	Logout      logoutCommand      `cmd:"" example:"portolan logout lab" group:"Get started" help:"Delete a context and revoke the token that portolan login created."`
	Context     contextCommand     `cmd:"" group:"Get started" help:"List the contexts and select the current one."`
	Token       tokenCommand       `cmd:"" group:"Run a manager" help:"Create, list and revoke bearer tokens."`
	Status      statusCommand      `cmd:"" group:"Run a manager" help:"Show the state of a manager and its alarms."`
	Figures     figuresCommand     `cmd:"" example:"portolan figures networks/100123 --period 28d" group:"Run a manager" help:"Show figures of an object over time, such as the utilization of a network."`
	Doctor      doctorCommand      `cmd:"" group:"Run a manager" help:"Diagnose a manager and its environment on this machine, and suggest fixes."`
	Ready       readyCommand       `cmd:"" group:"Run a manager" help:"Check whether a manager is ready, for container health checks."`
	Password    passwordCommand    `cmd:"" group:"Run a manager" help:"Set a new password for a user, for example after the old one was lost."`
	SignIn      signInCommand      `cmd:"" example:"portolan sign-in --data /var/lib/portolan --url https://portolan.example.net" group:"Run a manager" name:"sign-in" help:"Print a link that signs a user in to the console. It is valid once, for 15 minutes."`
	Key         keyCommand         `cmd:"" group:"Run a manager" help:"Create key sets for the token exchange."`
	Fleet       fleetCommand       `cmd:"" group:"Fleet" help:"Manage service points and their applications."`
	Rollout     rolloutCommand     `cmd:"" group:"Fleet" help:"Update many service points, in waves."`
	Simulate    simulateCommand    `cmd:"" example:"portolan simulate --service-points 1000 --for 5m" group:"Fleet" help:"Simulate many service points that enrol and check in, to test the load on a manager."`
	Release     releaseCommand     `cmd:"" group:"Fleet" help:"Create, sign and publish releases for service points."`
	Check       checkCommand       `cmd:"" example:"portolan check --data /var/lib/portolan" group:"Run a manager" help:"Verify every invariant of a manager's data."`
	Authority   authorityCommand   `cmd:"" group:"Run a manager" help:"Print the certificate of the manager's own authority."`
	Secrets     secretsCommand     `cmd:"" group:"Run a manager" help:"Manage the master key that encrypts secrets."`
	Rights      rightsCommand      `cmd:"" example:"portolan rights networks/10.1.0.0/24 --user alice" group:"Resources" help:"Show a user's access level to a resource, and the access rights that determine it."`
	Changes     changesCommand     `cmd:"" example:"portolan changes --data /var/lib/portolan --follow" group:"Run a manager" help:"Print the change feed as lines of JSON; --follow continues with new changes."`
	Deploy      deployCommand      `cmd:"" group:"DNS and DHCP" help:"Deploy DNS servers and zones."`
	DHCP        dhcpCommand        `cmd:"" group:"DNS and DHCP" help:"List leases and their history, explain the answer to a client, and end or reserve leases."`
	Discovery   discoveryCommand   `cmd:"" group:"Resources" help:"Run discovery, list what was seen, and accept or reject differences."`
	ExternalDNS externalDNSCommand `cmd:"" example:"portolan external-dns --configuration main --domain lab.example" group:"DNS and DHCP" name:"external-dns" help:"Run a webhook provider for Kubernetes external-dns."`
	Webhook     webhookCommand     `cmd:"" group:"Run a manager" help:"Manage webhooks that send changes to other programs, and receive their messages for a test."`
	Backup      backupCommand      `cmd:"" example:"portolan backup --data /var/lib/portolan portolan.backup" group:"Run a manager" help:"Write a consistent backup of all data to one file. The manager may be running."`
	Restore     restoreCommand     `cmd:"" example:"portolan restore --data /var/lib/portolan-new portolan.backup" group:"Run a manager" help:"Restore a backup into an empty data directory or database."`
	Rehearse    rehearseCommand    `cmd:"" example:"portolan rehearse --max-age 26h /var/lib/portolan/backups" group:"Run a manager" help:"Test a backup: restore it into a temporary directory, run portolan check on it, and delete the directory."`
	Migrate     migrateCommand     `cmd:"" example:"portolan migrate --from /var/lib/portolan --to postgres://portolan@db.example.net/portolan" group:"Run a manager" help:"Copy all data from one database to another, in either direction."`
	Completion  completionCommand  `cmd:"" group:"Get started" help:"Print the shell script that completes commands, fields and names."`
	Version     versionCommand     `cmd:"" example:"portolan version" group:"Get started" help:"Print the version."`

	Man         manCommand         `cmd:"" hidden:"" help:"Write man pages and completions below a directory."`
	Complete    completeCommand    `cmd:"" hidden:"" help:"Print the completions of the last word."`
	Application applicationCommand `cmd:"" hidden:"" help:"Run an application of a service point. Only the agent starts it."`
}

// missingFile matches the parser's message about a file that does not exist.
var missingFile = regexp.MustCompile(`(?:<file>: |)stat (.+): no such file or directory`)

// withExample prints the help of a command, and an example of it where the help itself has none.
func withExample(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	if at := c.Selected(); at != nil && at.Tag != nil && at.Tag.Get("example") != "" {
		_, err := fmt.Fprintf(c.Stdout, "\nExamples:\n\n  %s\n", at.Tag.Get("example"))
		return err
	}
	return nil
}

// usageError is a mistake on the command line: exit code 2.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run parses and runs a command line and gives the exit code: 0 done, 1 failed, 2 used wrongly, 3 done
// but for rows of an import that were skipped.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "--version" {
		args = []string{"version"}
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	var c commands
	exit := -1
	grammar := c.grammarFor(args)
	parser, err := kong.New(grammar, kong.Name("portolan"),
		kong.Description("Portolan manages the addresses, names and service points of a network, and serves DNS, DHCP and TFTP.\n\n"+
			"Begin with:  portolan demo"),
		kong.DefaultEnvars("PORTOLAN"), kong.Configuration(cli.ReadSettings), kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Exit(func(code int) { exit = code }),
		kong.Help(withExample), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}))
	if err != nil {
		fmt.Fprintln(stderr, "portolan:", err)
		return 1
	}
	parsed, err := parser.Parse(flagsFirst(parser.Model.Node, args))
	if exit >= 0 { // help was asked for
		return exit
	}
	if err != nil {
		try := "portolan"
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
			try = wrong.Context.Selected().FullPath()
		}
		fmt.Fprintf(stderr, "portolan: %s\nTry: %s --help\n", missingFile.ReplaceAllString(err.Error(), "$1: the file does not exist"), try)
		return 2
	}
	c.adopt(grammar)
	level := new(slog.LevelVar)
	log := c.logger(stderr, level)
	slog.SetDefault(log)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = parsed.Run(parser, &session{ctx: ctx, stdout: stdout, stderr: stderr, log: log, level: level, logLevel: c.LogLevel,
		levelGiven: os.Getenv("PORTOLAN_LOG_LEVEL") != "" || slices.ContainsFunc(args, func(x string) bool {
			return x == "--log-level" || strings.HasPrefix(x, "--log-level=")
		})})
	var wrong usageError
	var mistaken cli.UsageError
	switch {
	case errors.As(err, &wrong), errors.As(err, &mistaken):
		fmt.Fprintln(stderr, "portolan:", err)
		return 2
	case errors.As(err, new(skippedError)):
		fmt.Fprintln(stderr, "portolan:", err)
		return 3
	case err != nil:
		fmt.Fprintln(stderr, "portolan:", err)
		return 1
	}
	return 0
}

// session is the environment of a command.
type session struct {
	ctx            context.Context
	stdout, stderr io.Writer
	log            *slog.Logger
	// level is the minimum level of log. A reload of the settings file may change it.
	level *slog.LevelVar
	// levelGiven reports that the command line or the environment sets the level. It then takes precedence over the settings file.
	levelGiven bool
	// logLevel is the value of --log-level; empty if it is not given.
	logLevel string
}

func (c *commands) logger(w io.Writer, least *slog.LevelVar) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(c.LogLevel)) != nil { // kong allows only names of levels
		level = slog.LevelInfo
	}
	least.Set(level)
	options := &slog.HandlerOptions{Level: least}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// versionText is the version of this binary.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(s *session) error {
	_, err := fmt.Fprintln(s.stdout, "portolan", versionText())
	return err
}
