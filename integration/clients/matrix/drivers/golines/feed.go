package golines

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Event is what a rebalance callback was told: "assigned", "revoked" or "lost".
type Event struct {
	Kind       string
	Partitions []Partition
	At         time.Time
}

func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{e.Kind, e.Partitions, e.At.UnixMilli()})
}

// Feed takes what a consumer's goroutines find, for the calls to ask for. Its methods may run at once.
type Feed struct {
	mu      sync.Mutex
	records []Received
	failure error
	changed chan struct{}
	events  []Event
	owned   map[Partition]bool
}

func NewFeed() *Feed {
	return &Feed{changed: make(chan struct{}, 1), events: []Event{}, owned: map[Partition]bool{}}
}

// Add records that came.
func (f *Feed) Add(records ...Received) {
	f.mu.Lock()
	f.records = append(f.records, records...)
	f.mu.Unlock()
	f.wake()
}

// Fail makes the next Take that finds no record return the error.
func (f *Feed) Fail(err error) {
	f.mu.Lock()
	f.failure = err
	f.mu.Unlock()
	f.wake()
}

func (f *Feed) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Assigned notes partitions that came.
func (f *Feed) Assigned(partitions []Partition) { f.event("assigned", partitions, true) }

// Revoked notes partitions that were given up.
func (f *Feed) Revoked(partitions []Partition) { f.event("revoked", partitions, false) }

// Lost notes partitions that somebody else has by now.
func (f *Feed) Lost(partitions []Partition) { f.event("lost", partitions, false) }

func (f *Feed) event(kind string, partitions []Partition, owned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, Event{kind, sorted(partitions), time.Now()})
	for _, each := range partitions {
		if owned {
			f.owned[each] = true
		} else {
			delete(f.owned, each)
		}
	}
}

// Take waits for records, and gives at most `count`.
func (f *Feed) Take(count, timeoutMs int) ([]Received, error) {
	deadline := time.After(time.Duration(timeoutMs) * time.Millisecond)
	found := []Received{}
	for {
		f.mu.Lock()
		taken := min(count-len(found), len(f.records))
		found = append(found, f.records[:taken]...)
		f.records = f.records[taken:]
		var failure error
		if len(found) < count {
			failure, f.failure = f.failure, nil
		}
		f.mu.Unlock()
		if failure != nil || len(found) == count {
			return found, failure
		}
		select {
		case <-f.changed:
		case <-deadline:
			return found, nil
		}
	}
}

// Events gives those since the last call.
func (f *Feed) Events() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = []Event{}
	return events
}

// Assignment gives the partitions that the callbacks told of.
func (f *Feed) Assignment() ([]Partition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	owned := []Partition{}
	for each := range f.owned {
		owned = append(owned, each)
	}
	return sorted(owned), nil
}

func sorted(partitions []Partition) []Partition {
	found := append([]Partition{}, partitions...)
	slices.SortFunc(found, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
	})
	return found
}

// Of makes partitions of the numbers by topic.
func Of(numbers map[string][]int32) []Partition {
	found := []Partition{}
	for topic, each := range numbers {
		for _, number := range each {
			found = append(found, Partition{topic, number})
		}
	}
	return found
}

// ByTopic makes numbers by topic of partitions.
func ByTopic(partitions []Partition) map[string][]int32 {
	found := map[string][]int32{}
	for _, each := range partitions {
		found[each.Topic] = append(found[each.Topic], each.Number)
	}
	return found
}
