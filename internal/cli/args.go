package cli

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
)

// takes checks the number of arguments; names are those of the arguments, optional ones in brackets.
func takes(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return fmt.Errorf("%s needs %s", ownPath(cmd), strings.Join(names[len(args):least], " and "))
		}
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// group is a command that does nothing without one of its own commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short}
	g.Args = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name())
		}
		if len(args) > 0 {
			return fmt.Errorf("%s has no command %q; it has: %s", ownPath(g), args[0], strings.Join(names, ", "))
		}
		return fmt.Errorf("%s needs a command: %s", ownPath(g), strings.Join(names, ", "))
	}
	g.RunE = func(*cobra.Command, []string) error { return nil } // Args lets nothing through
	g.AddCommand(commands...)
	return g
}

// ownPath names a command without the program, which is in front of every error.
func ownPath(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// checkAddress sees whether a flag's value is a HOST:PORT.
func checkAddress(flag, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil && port == "" {
		err = fmt.Errorf("address %s: missing port", value)
	}
	if err != nil {
		return usagef("--%s=%s is not HOST:PORT (%w)", flag, value, err)
	}
	return nil
}
