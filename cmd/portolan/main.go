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
	LogFormat string `help:"How log lines are written to standard error: ${enum}." enum:"text,json" default:"text"`
	LogLevel  string `help:"The least that is logged: debug, info, warn or error. Without it a manager logs what its settings say, and others log info." enum:"debug,info,warn,error," default:""`

	Demo        demoCommand        `cmd:"" example:"portolan demo --data ./demo" group:"Begin" help:"Start everything with sample data on loopback, and say how to use it."`
	Serve       serveCommand       `cmd:"" group:"Run a manager" help:"Run a manager: the address API, the fleet API and the check-in door."`
	Agent       agentCommand       `cmd:"" group:"Fleet" help:"Run a service point: enrol, check in, probe the network, show diagnostics."`
	List        listCommand        `cmd:"" group:"Resources" help:"List resources: networks, zones, users, whatever there is."`
	Get         getCommand         `cmd:"" group:"Resources" help:"Show resources, by their names."`
	Create      createCommand      `cmd:"" group:"Resources" help:"Make a resource."`
	Set         setCommand         `cmd:"" group:"Resources" help:"Change fields of a resource."`
	Delete      deleteCommand      `cmd:"" group:"Resources" help:"Delete a resource with all that lies below it, in steps that others get between."`
	Assign      assignCommand      `cmd:"" group:"Resources" help:"Assign what is free next: addresses of a network, networks of a block."`
	Next        nextCommand        `cmd:"" group:"Resources" help:"Show what is free next, and change nothing."`
	Split       splitCommand       `cmd:"" group:"Resources" help:"Split a block or a network."`
	Merge       mergeCommand       `cmd:"" group:"Resources" help:"Merge blocks, networks or ranges into one."`
	Move        moveCommand        `cmd:"" group:"Resources" help:"Move a resource with all in it."`
	Search      searchCommand      `cmd:"" example:"portolan search 10.3.4.20" group:"Resources" help:"Find resources by an address, a prefix, a hardware address, a name or a part of one."`
	History     historyCommand     `cmd:"" group:"Resources" help:"Show what was changed, by whom, and value by value."`
	Undo        undoCommand        `cmd:"" group:"Resources" help:"Take a transaction back."`
	Apply       applyCommand       `cmd:"" group:"Documents and files" help:"Let resources be as files say: what would change is shown first."`
	Export      exportCommand      `cmd:"" group:"Documents and files" help:"Write resources as files that apply takes back, and zones as zone files."`
	Import      importCommand      `cmd:"" group:"Documents and files" help:"Read what engineers keep in files."`
	Batch       batchCommand       `cmd:"" example:"portolan batch changes.json --dry-run" group:"Documents and files" help:"Make many changes of a file at once, all or none."`
	Login       loginCommand       `cmd:"" group:"Begin" help:"Sign in at a manager, and note it as the context that commands use."`
	Logout      logoutCommand      `cmd:"" example:"portolan logout lab" group:"Begin" help:"Forget a context."`
	Context     contextCommand     `cmd:"" group:"Begin" help:"List the contexts, and choose one."`
	Token       tokenCommand       `cmd:"" group:"Run a manager" help:"Make, list and revoke bearer tokens."`
	Status      statusCommand      `cmd:"" group:"Run a manager" help:"Show how a manager is, and what somebody should do something about."`
	Doctor      doctorCommand      `cmd:"" group:"Run a manager" help:"Look at what a manager needs on this machine, and at one that runs, and say what to do."`
	Ready       readyCommand       `cmd:"" group:"Run a manager" help:"Ask whether a manager is ready, as for the health of a container."`
	Password    passwordCommand    `cmd:"" group:"Run a manager" help:"Give a user a new password, as when nobody knows the old one any more."`
	SignIn      signInCommand      `cmd:"" example:"portolan sign-in --data /var/lib/portolan --url https://portolan.example.net" group:"Run a manager" name:"sign-in" help:"Print a link that signs somebody in at the console, once, within a quarter of an hour."`
	Key         keyCommand         `cmd:"" group:"Run a manager" help:"Make key sets for the token exchange."`
	Fleet       fleetCommand       `cmd:"" group:"Fleet" help:"Fleet service points, and the applications that they run."`
	Rollout     rolloutCommand     `cmd:"" group:"Fleet" help:"Update many service points, in waves."`
	Simulate    simulateCommand    `cmd:"" example:"portolan simulate --service-points 1000 --for 5m" group:"Fleet" help:"Let many service points that do not exist enrol and check in, to see what a manager bears."`
	Release     releaseCommand     `cmd:"" group:"Fleet" help:"Make, sign and publish the releases that service points are updated to."`
	Check       checkCommand       `cmd:"" example:"portolan check --data /var/lib/portolan" group:"Run a manager" help:"Verify every invariant of a manager's data."`
	Authority   authorityCommand   `cmd:"" group:"Run a manager" help:"Print the certificate of the manager's own authority."`
	Secrets     secretsCommand     `cmd:"" group:"Run a manager" help:"The master key that secrets are sealed by."`
	Rights      rightsCommand      `cmd:"" example:"portolan rights networks/10.1.0.0/24 --user alice" group:"Resources" help:"Show what somebody may do with a resource, and which access rights decide."`
	Changes     changesCommand     `cmd:"" example:"portolan changes --data /var/lib/portolan --follow" group:"Run a manager" help:"Print every change, as lines of JSON; with --follow as they are committed."`
	Deploy      deployCommand      `cmd:"" group:"Names on the wire" help:"Put names on the wire: deploy servers and zones."`
	ExternalDNS externalDNSCommand `cmd:"" example:"portolan external-dns --configuration main --domain lab.example" group:"Names on the wire" name:"external-dns" help:"Let external-dns of Kubernetes keep its records here: its webhook provider."`
	Webhook     webhookCommand     `cmd:"" group:"Run a manager" help:"Send what changes to other programs: list, create and delete webhooks, and take what they are sent."`
	Backup      backupCommand      `cmd:"" example:"portolan backup --data /var/lib/portolan portolan.backup" group:"Run a manager" help:"Write everything into one file, of one moment; the manager may be serving."`
	Restore     restoreCommand     `cmd:"" example:"portolan restore --data /var/lib/portolan-new portolan.backup" group:"Run a manager" help:"Write a backup into an empty data directory or database."`
	Rehearse    rehearseCommand    `cmd:"" example:"portolan rehearse --max-age 26h /var/lib/portolan/backups" group:"Run a manager" help:"Try a backup: restore it into a temporary directory, check it as portolan check does, and take that away again."`
	Migrate     migrateCommand     `cmd:"" example:"portolan migrate --from /var/lib/portolan --to postgres://portolan@db.example.net/portolan" group:"Run a manager" help:"Carry everything from one database to another, either way."`
	Completion  completionCommand  `cmd:"" group:"Begin" help:"Print what a shell is told so that it completes commands, fields and names."`
	Version     versionCommand     `cmd:"" example:"portolan version" group:"Begin" help:"Print the version."`

	Man         manCommand         `cmd:"" hidden:"" help:"Write man pages and completions below a directory."`
	Complete    completeCommand    `cmd:"" hidden:"" help:"Print what the last word may become."`
	Application applicationCommand `cmd:"" hidden:"" help:"Run an application of a service point, which starts it."`
}

// missingFile is how the parser says that a file is not there.
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
		kong.Description("Portolan keeps the addresses, names and service points of a network in one place and puts them on the wire.\n\n"+
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
		fmt.Fprintf(stderr, "portolan: %s\nTry: %s --help\n", missingFile.ReplaceAllString(err.Error(), "$1: there is no such file"), try)
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

// session is what a command runs in.
type session struct {
	ctx            context.Context
	stdout, stderr io.Writer
	log            *slog.Logger
	// level is the least that log takes; the file of settings may change it while the program runs.
	level *slog.LevelVar
	// levelGiven says that the command line or the environment has it, which goes before the file.
	levelGiven bool
	// logLevel is what was asked for with --log-level; empty where nothing was.
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
