// Package gate counts what each skipper asks for.
package gate

import (
	"errors"
	"sync"
	"time"
)

// ErrTooMany is returned when a skipper has announced too many boats.
var ErrTooMany = errors.New("too many boats in this hour")

const (
	// perHour is how many boats one skipper may announce in an hour.
	perHour = 6
	// window is the hour.
	window = time.Hour
)

// Limiter remembers what each skipper announced in the last hour.
type Limiter struct {
	mu   sync.Mutex
	seen map[string][]time.Time
	now  func() time.Time
}

// NewLimiter makes a limiter that reads the time from now.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{seen: make(map[string][]time.Time), now: now}
}

// Allow notes one announcement, or says that it is one too many.
func (l *Limiter) Allow(skipper string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := l.recent(skipper)
	if len(recent) >= perHour {
		return ErrTooMany
	}
	l.seen[skipper] = append(recent, l.now())
	return nil
}

// Left says how many boats the skipper may still announce.
func (l *Limiter) Left(skipper string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return perHour - len(l.recent(skipper))
}

func (l *Limiter) recent(skipper string) []time.Time {
	since := l.now().Add(-window)
	var recent []time.Time
	for _, at := range l.seen[skipper] {
		if at.After(since) {
			recent = append(recent, at)
		}
	}
	return recent
}
