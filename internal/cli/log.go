package cli

import (
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logFlags are the flags of a process that writes a log.
type logFlags struct{ level, format choice }

func (f *logFlags) add(cmd *cobra.Command, level string) {
	f.level, f.format = choiceOf("debug", "info", "warn", "error"), choiceOf("console", "json")
	f.level.value = level
	cmd.Flags().Var(&f.level, "log-level", "least serious lines that are logged")
	cmd.Flags().Var(&f.format, "log-format", "form of a line of the log")
}

// logger writes to w.
func (f *logFlags) logger(w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(f.level.value)
	if err != nil {
		return nil, err
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	encoder := zapcore.NewJSONEncoder(config)
	if f.format.value == "console" {
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(config)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}
