// Package golines holds what the drivers of Go's clients share: the lines of the protocol.
// The package `integration.clients.matrix` describes the calls.
package golines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// Cannot is the error of a call that the client does not have.
type Cannot string

func (c Cannot) Error() string { return string(c) }

// Partition is [topic, number].
type Partition struct {
	Topic  string
	Number int32
}

func (p Partition) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.Topic, p.Number}) }

func (p *Partition) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.Topic, &p.Number})
}

// Offset is [topic, partition, offset, metadata].
type Offset struct {
	Partition
	At       int64
	Metadata string
}

func (o *Offset) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&o.Topic, &o.Number, &o.At, &o.Metadata})
}

// Committed is [offset, metadata]; a nil one is null.
type Committed struct {
	At       int64
	Metadata string
}

func (c Committed) MarshalJSON() ([]byte, error) { return json.Marshal([]any{c.At, c.Metadata}) }

// Header is [name, value].
type Header struct {
	Name  string
	Value *string
}

func (h Header) MarshalJSON() ([]byte, error)  { return json.Marshal([]any{h.Name, h.Value}) }
func (h *Header) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&h.Name, &h.Value}) }

// Record is one that is sent.
type Record struct {
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Partition *int32   `json:"partition"`
	Headers   []Header `json:"headers"`
	Timestamp *int64   `json:"timestamp"`
}

// Received is a record that was consumed.
type Received struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp int64    `json:"timestamp"`
}

// Bytes of a text, nil of null.
func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return append([]byte{}, *text...)
}

// Text of bytes, null of nil.
func Text(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// Produce has the arguments of that call, and so have the types that follow.
type Produce struct {
	Topic       string
	Records     []Record
	Acks        int16
	Compression string
	Idempotent  bool
}

type Open struct {
	Name              string
	Topics            []string
	Pattern           string
	Partitions        []Partition
	Group             string
	Protocol          string
	Reset             string
	Assignors         []string
	Instance          string
	AutoCommit        bool   `json:"auto_commit"`
	CommitOnRevoke    bool   `json:"commit_on_revoke"`
	SessionTimeoutMs  int    `json:"session_timeout_ms"`
	MaxPollIntervalMs *int   `json:"max_poll_interval_ms"`
	Isolation         string `json:"isolation"`
}

// TopicRecord is [topic, record].
type TopicRecord struct {
	Topic string
	Record
}

func (t *TopicRecord) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&t.Topic, &t.Record})
}

type Transact struct {
	ID      string
	Records []TopicRecord
	End     string
	Group   string
	Offsets []Offset
}

type Topic struct {
	Topic      string
	Partitions int32
	Configs    map[string]*string
}

// Group is a description of one.
type Group struct {
	State   string `json:"state"`
	Members int    `json:"members"`
}

// Where is an offset to seek to: a number, or Beginning or End.
type Where struct {
	At             int64
	Beginning, End bool
}

func (w *Where) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"beginning"`:
		w.Beginning = true
		return nil
	case `"end"`:
		w.End = true
		return nil
	}
	return json.Unmarshal(b, &w.At)
}

// Driver is one client: the calls that need no consumer.
type Driver interface {
	Produce(Produce) ([][2]int64, error)
	Open(Open) (Consumer, error)
	Transact(Transact) error
	CreateTopic(Topic) error
	DeleteTopic(topic string) error
	GrowTopic(topic string, partitions int32) error
	Topics() ([]string, error)
	Ends(topic string) ([][2]int64, error)
	Configs(topic string) (map[string]*string, error)
	AlterConfigs(topic string, configs map[string]*string) error
	Groups() ([]string, error)
	Group(name string) (Group, error)
	DeleteGroup(name string) error
	DeleteRecords(partition Partition, offset int64) error
}

// Consumer is what Open begins. A Feed has the first three calls.
type Consumer interface {
	Take(count, timeoutMs int) ([]Received, error)
	Events() []Event
	Assignment() ([]Partition, error)
	Commit(offsets []Offset, wait bool) error
	Committed(partitions []Partition) ([]*Committed, error)
	Position(Partition) (int64, error)
	Seek(Partition, Where) error
	SeekToTime(partition Partition, timestampMs int64) error
	Pause(partitions []Partition) error
	Resume(partitions []Partition) error
	Stall(ms int) error
	Close() error
}

// answer decodes the arguments of a call and carries it out.
type answer func(arguments []byte) (any, error)

func call[A any](do func(A) (any, error)) answer {
	return func(line []byte) (any, error) {
		var arguments A
		if err := json.Unmarshal(line, &arguments); err != nil {
			return nil, err
		}
		return do(arguments)
	}
}

// consumed are the arguments of a consumer's calls.
type consumed struct {
	Name        string
	Count       int
	TimeoutMs   int `json:"timeout_ms"`
	Ms          int
	Offsets     []Offset
	Wait        *bool
	Partitions  []Partition
	Topic       string
	Partition   int32
	TimestampMs int64 `json:"timestamp_ms"`
}

func (c consumed) partition() Partition { return Partition{c.Topic, c.Partition} }

type grown struct {
	Topic      string
	Partitions int32
}

type deleted struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Serve answers the lines of stdin until it ends. `module` is the client's path, for its version.
func Serve(name, module string, driver Driver) {
	calls := callsOf(driver)
	calls["hello"] = func([]byte) (any, error) { return []string{name, version(module)}, nil }
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var line json.RawMessage
		if err := input.Decode(&line); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		if err := output.Encode(reply(calls, line)); err != nil {
			panic(err)
		}
	}
}

func reply(calls map[string]answer, line []byte) map[string]any {
	var request struct{ Do string }
	if err := json.Unmarshal(line, &request); err != nil {
		panic(err)
	}
	call, found := calls[request.Do]
	if !found {
		return map[string]any{"cannot": "no " + request.Do}
	}
	is, err := call(line)
	var cannot Cannot
	switch {
	case errors.As(err, &cannot):
		return map[string]any{"cannot": string(cannot)}
	case err != nil:
		return map[string]any{"error": fmt.Sprintf("%T", err), "message": err.Error()}
	}
	return map[string]any{"is": is}
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			return each.Version
		}
	}
	return "unknown"
}

// names are never null.
func names(found []string, err error) ([]string, error) { return append([]string{}, found...), err }

func callsOf(driver Driver) map[string]answer {
	consumers := map[string]Consumer{}
	of := func(do func(Consumer, consumed) (any, error)) answer {
		return call(func(a consumed) (any, error) {
			consumer, found := consumers[a.Name]
			if !found {
				return nil, fmt.Errorf("no consumer %q", a.Name)
			}
			return do(consumer, a)
		})
	}
	return map[string]answer{
		"produce": func(line []byte) (any, error) {
			a := Produce{Acks: -1, Compression: "none"}
			if err := json.Unmarshal(line, &a); err != nil {
				return nil, err
			}
			return driver.Produce(a)
		},
		"open": func(line []byte) (any, error) {
			a := Open{Reset: "earliest", SessionTimeoutMs: 10_000, Isolation: "read_uncommitted"}
			if err := json.Unmarshal(line, &a); err != nil {
				return nil, err
			}
			consumer, err := driver.Open(a)
			if err == nil {
				consumers[a.Name] = consumer
			}
			return nil, err
		},
		"take":       of(func(c Consumer, a consumed) (any, error) { return c.Take(a.Count, a.TimeoutMs) }),
		"events":     of(func(c Consumer, a consumed) (any, error) { return c.Events(), nil }),
		"assignment": of(func(c Consumer, a consumed) (any, error) { return c.Assignment() }),
		"commit": of(func(c Consumer, a consumed) (any, error) {
			return nil, c.Commit(a.Offsets, a.Wait == nil || *a.Wait)
		}),
		"committed": of(func(c Consumer, a consumed) (any, error) { return c.Committed(a.Partitions) }),
		"position":  of(func(c Consumer, a consumed) (any, error) { return c.Position(a.partition()) }),
		"seek": func(line []byte) (any, error) {
			var where struct{ Offset Where }
			if err := json.Unmarshal(line, &where); err != nil {
				return nil, err
			}
			return of(func(c Consumer, a consumed) (any, error) {
				return nil, c.Seek(a.partition(), where.Offset)
			})(line)
		},
		"seek_to_time": of(func(c Consumer, a consumed) (any, error) {
			return nil, c.SeekToTime(a.partition(), a.TimestampMs)
		}),
		"pause":  of(func(c Consumer, a consumed) (any, error) { return nil, c.Pause(a.Partitions) }),
		"resume": of(func(c Consumer, a consumed) (any, error) { return nil, c.Resume(a.Partitions) }),
		"stall":  of(func(c Consumer, a consumed) (any, error) { return nil, c.Stall(a.Ms) }),
		"close": of(func(c Consumer, a consumed) (any, error) {
			delete(consumers, a.Name)
			return nil, c.Close()
		}),
		"transact": call(func(a Transact) (any, error) { return nil, driver.Transact(a) }),
		"create_topic": func(line []byte) (any, error) {
			a := Topic{Partitions: 1}
			if err := json.Unmarshal(line, &a); err != nil {
				return nil, err
			}
			return nil, driver.CreateTopic(a)
		},
		"delete_topic":  call(func(a grown) (any, error) { return nil, driver.DeleteTopic(a.Topic) }),
		"grow_topic":    call(func(a grown) (any, error) { return nil, driver.GrowTopic(a.Topic, a.Partitions) }),
		"topics":        call(func(a grown) (any, error) { return names(driver.Topics()) }),
		"ends":          call(func(a grown) (any, error) { return driver.Ends(a.Topic) }),
		"configs":       call(func(a grown) (any, error) { return driver.Configs(a.Topic) }),
		"alter_configs": call(func(a Topic) (any, error) { return nil, driver.AlterConfigs(a.Topic, a.Configs) }),
		"groups":        call(func(a consumed) (any, error) { return names(driver.Groups()) }),
		"group":         call(func(a consumed) (any, error) { return driver.Group(a.Name) }),
		"delete_group":  call(func(a consumed) (any, error) { return nil, driver.DeleteGroup(a.Name) }),
		"delete_records": call(func(a deleted) (any, error) {
			return nil, driver.DeleteRecords(Partition{a.Topic, a.Partition}, a.Offset)
		}),
	}
}
