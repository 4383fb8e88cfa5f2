package server

import (
	"context"
	"log/slog"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/manager/settings"
)

// levels are the log levels of the parts of a manager, by its settings.
type levels struct {
	manager, api, imports slog.LevelVar
}

// part is the log handler of a part of the manager, with a level of its own.
type part struct {
	slog.Handler
	level *slog.LevelVar
}

// Enabled reports whether the part logs at a level.
func (p part) Enabled(_ context.Context, level slog.Level) bool { return level >= p.level.Level() }

// WithAttrs returns a handler of the same level with further attributes.
func (p part) WithAttrs(attrs []slog.Attr) slog.Handler {
	return part{p.Handler.WithAttrs(attrs), p.level}
}

// WithGroup returns a handler of the same level with a group.
func (p part) WithGroup(name string) slog.Handler { return part{p.Handler.WithGroup(name), p.level} }

// logOf returns the logger of a part. Without levels in the settings it is the manager's.
func (m *Manager) logOf(level *slog.LevelVar) *slog.Logger {
	named := middleware.NamingRequests(m.options.Log.Handler())
	if m.options.LogLevel != "" {
		return slog.New(named)
	}
	return slog.New(part{named, level})
}

// heedEvery is the interval at which changed levels are read.
const heedEvery = time.Second

// heedLevels applies the log levels of the settings until ctx ends.
func (m *Manager) heedLevels(ctx context.Context) {
	known := store.NewCache[struct{}](m.Store, store.CacheOptions[settings.LogLevelSettings]{Topics: []string{"settings"}})
	failed := false
	for ctx.Err() == nil {
		if _, ok := known.Now(struct{}{}); !ok {
			err := m.setLevels(ctx, known)
			if err != nil && !failed && ctx.Err() == nil {
				m.log.Error("log levels not readable", "error", err)
			}
			failed = err != nil
		}
		store.Pause(ctx, heedEvery)
	}
}

// setLevels reads and applies the levels.
func (m *Manager) setLevels(ctx context.Context, known *store.Cache[struct{}, settings.LogLevelSettings]) error {
	return m.Store.View(ctx, func(tx *store.Tx) error {
		x, err := settings.LogLevels(tx, m.Address)
		if x == nil || err != nil {
			return err
		}
		for part, level := range map[*slog.LevelVar]string{&m.levels.manager: x.AddressManager, &m.levels.api: x.RestV2,
			&m.levels.imports: x.ZoneImport} {
			part.Set(settings.Levels[level])
		}
		known.Put(tx, struct{}{}, *x)
		return nil
	})
}
