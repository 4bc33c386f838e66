package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Process is what a command line has of the process that it runs in.
type Process struct {
	Name      string   // of the program, in front of its errors
	Args      []string // without the program's name
	Stdout    io.Writer
	Stderr    io.Writer
	Terminal  bool // Stderr is a terminal: a line of it can be written anew
	LookupEnv func(name string) (value string, found bool)
	// Notify gives a context that ends with the next signal to stop. It is called again by who wants to see a second signal; otherwise a second
	// one kills the process.
	Notify func(context.Context) (context.Context, context.CancelFunc)
}

// OS is the process that this program runs in. An empty name is that of the executable.
func OS(name string) Process {
	if name == "" {
		name = filepath.Base(os.Args[0])
	}
	return Process{
		Name: name, Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Terminal: isTerminal(os.Stderr), LookupEnv: os.LookupEnv,
		Notify: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		},
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// execute runs a command line and returns the exit code.
func (p Process) execute(root *cobra.Command) int {
	ctx, stop := p.Notify(context.Background())
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the second signal kills
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.applyEnv(cmd); err != nil {
			return err
		}
		started = true
		return nil
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append([]string{}, p.Args...))
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		err = usageError(err)
	}
	return p.report(cmd, err)
}

const envPrefix = "WEIR_"

// applyEnv sets the flags that were not given from the environment: --checkpoint-dir from WEIR_CHECKPOINT_DIR. An empty variable is none.
func (p Process) applyEnv(cmd *cobra.Command) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" || first != nil {
			return
		}
		name := envName(f.Name)
		if value, found := p.LookupEnv(name); found && value != "" {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				first = &namedError{name, err}
			}
		}
	})
	return first
}

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
