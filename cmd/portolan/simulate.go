package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/servicepoint"
)

type simulateCommand struct {
	managerFlags
	ServicePoints int           `help:"The number of service points." default:"100" env:"-"`
	Name          string        `help:"The prefix of their names." default:"simulated" env:"-"`
	Hands         int           `help:"The number of concurrent enrolments." default:"16" env:"-"`
	For           time.Duration `help:"The duration; 0s until interrupted." default:"0s" env:"-"`
	Keep          bool          `help:"Keep the service points in the fleet afterwards." env:"-"`
}

// Run simulates service points that check in.
func (c *simulateCommand) Run(s *session) error {
	if c.ServicePoints < 1 || c.Hands < 1 {
		return usageError{errors.New("--service-points and --hands must be 1 or more")}
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	ctx := s.ctx
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	run := time.Now().Unix()
	var mu sync.Mutex
	var made []string
	simulation := &servicepoint.Crowd{Size: c.ServicePoints, Hands: c.Hands, Version: versionText(), Log: s.log,
		Enrol: func(ctx context.Context, number int) (string, string, error) {
			created, err := cl.CreateInstance(ctx, fmt.Sprintf("%s-%d-%06d", c.Name, run, number), "Made by portolan simulate", 1)
			if err == nil {
				mu.Lock()
				made = append(made, created.FleetInstanceID)
				mu.Unlock()
			}
			return created.RegistrationEndpoint, created.RegistrationKey, err
		}}
	done := make(chan error, 1)
	go func() { done <- simulation.Run(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for previous := int64(0); ; {
		select {
		case <-tick.C:
			now := simulation.Answered.Load()
			fmt.Fprintf(s.stdout, "enrolled %d, waiting %d, check-ins %d (%d/s), failed %d\n", simulation.Enrolled.Load(), simulation.Held.Load(),
				now, now-previous, simulation.Failed.Load())
			previous = now
		case err := <-done:
			if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if c.Keep {
				return err
			}
			fmt.Fprintf(s.stdout, "removing %s\n", plural.Count(len(made), "service point"))
			for _, id := range made {
				err = errors.Join(err, cl.DeleteInstance(context.WithoutCancel(s.ctx), id))
			}
			return err
		}
	}
}
