package gate

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Announcement is what a skipper sends.
type Announcement struct {
	Skipper string `json:"skipper"`
	Boat    string `json:"boat"`
	Metres  int    `json:"metres"`
}

// Engine finds a berth for a boat.
type Engine interface {
	Allot(boat string, metres int) (berth int, err error)
}

// Handler answers announcements with a berth.
func Handler(limiter *Limiter, engine Engine) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var announcement Announcement
		if err := json.NewDecoder(r.Body).Decode(&announcement); err != nil {
			http.Error(w, "cannot read the announcement", http.StatusBadRequest)
			return
		}
		if err := limiter.Allow(announcement.Skipper); errors.Is(err, ErrTooMany) {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		berth, err := engine.Allot(announcement.Boat, announcement.Metres)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		writeBerth(w, berth)
	})
}

func writeBerth(w http.ResponseWriter, berth int) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"berth": berth})
}
