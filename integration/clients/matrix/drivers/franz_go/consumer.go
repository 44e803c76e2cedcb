package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	lines "kshim/golines"
)

// consumer has one goroutine, which polls, and carries out calls in between.
type consumer struct {
	*lines.Feed
	client    *kgo.Client
	admin     *kadm.Client
	group     string
	calls     chan func()
	mu        sync.Mutex
	interrupt context.CancelFunc
	closed    bool
}

func (d *driver) Open(a lines.Open) (lines.Consumer, error) {
	if a.MaxPollIntervalMs != nil {
		return nil, lines.Cannot("no max.poll.interval.ms: a member that does not poll stays one")
	}
	feed := lines.NewFeed()
	options, err := d.options(a, feed)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	opened := &consumer{
		Feed:      feed,
		client:    client,
		admin:     d.admin,
		group:     a.Group,
		calls:     make(chan func(), 1),
		interrupt: func() {},
	}
	go opened.run()
	return opened, nil
}

func (d *driver) options(a lines.Open, feed *lines.Feed) ([]kgo.Opt, error) {
	reset := kgo.NewOffset().AtStart()
	if a.Reset == "latest" {
		reset = kgo.NewOffset().AtEnd()
	}
	isolation := kgo.ReadUncommitted()
	if a.Isolation == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(500 * time.Millisecond),
		kgo.ConsumeResetOffset(reset),
		kgo.FetchIsolationLevel(isolation),
	}
	options = append(options, secured...)
	switch {
	case a.Partitions != nil:
		partitions := map[string]map[int32]kgo.Offset{}
		for _, each := range a.Partitions {
			if partitions[each.Topic] == nil {
				partitions[each.Topic] = map[int32]kgo.Offset{}
			}
			partitions[each.Topic][each.Number] = reset
		}
		options = append(options, kgo.ConsumePartitions(partitions))
	case a.Pattern != "":
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(a.Pattern))
	default:
		options = append(options, kgo.ConsumeTopics(a.Topics...))
	}
	if a.Group == "" {
		return options, nil
	}
	return d.groupOptions(a, feed, options)
}

func (d *driver) groupOptions(a lines.Open, feed *lines.Feed, options []kgo.Opt) ([]kgo.Opt, error) {
	session := time.Duration(a.SessionTimeoutMs) * time.Millisecond
	type numbers = map[string][]int32
	options = append(
		options,
		kgo.ConsumerGroup(a.Group),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(session/4),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, found numbers) {
			feed.Assigned(lines.Of(found))
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, found numbers) {
			if a.AutoCommit || a.CommitOnRevoke { // this callback replaces the client's own, which commits
				if err := client.CommitUncommittedOffsets(ctx); err != nil {
					feed.Fail(err)
				}
			}
			feed.Revoked(lines.Of(found))
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, found numbers) {
			feed.Lost(lines.Of(found))
		}),
	)
	known := assignors
	if a.Protocol == "consumer" {
		known = serverAssignors
		options = append(options, kgo.WithContext(optedIn()))
	}
	if len(a.Assignors) > 0 {
		balancers := []kgo.GroupBalancer{}
		for _, each := range a.Assignors {
			if known[each] == nil {
				return nil, lines.Cannot("no assignor " + each)
			}
			balancers = append(balancers, known[each]())
		}
		options = append(options, kgo.Balancers(balancers...))
	}
	if a.Instance != "" {
		options = append(options, kgo.InstanceID(a.Instance))
	}
	if !a.AutoCommit {
		options = append(options, kgo.DisableAutoCommit())
	}
	return options, nil
}

// optedIn makes a client use the consumer protocol, which it has to be asked for.
func optedIn() context.Context {
	return context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
}

func (c *consumer) run() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		c.interrupt = cancel
		c.mu.Unlock()
		select {
		case call := <-c.calls:
			call()
		default:
		}
		if c.closed {
			cancel()
			return
		}
		fetches := c.client.PollFetches(ctx)
		cancel()
		for _, each := range fetches.Errors() {
			if !errors.Is(each.Err, context.Canceled) {
				c.Fail(each.Err)
			}
		}
		found := []lines.Received{}
		fetches.EachRecord(func(record *kgo.Record) { found = append(found, received(record)) })
		c.Add(found...)
	}
}

// begin interrupts the poll and has `call` run between two.
func (c *consumer) begin(call func()) {
	c.calls <- call
	c.mu.Lock()
	c.interrupt()
	c.mu.Unlock()
}

func (c *consumer) do(call func() error) error {
	done := make(chan error, 1)
	c.begin(func() { done <- call() })
	return <-done
}

func (c *consumer) Commit(offsets []lines.Offset, wait bool) error {
	ctx, cancel := within()
	if offsets == nil {
		defer cancel()
		return c.do(func() error { return c.client.CommitUncommittedOffsets(ctx) })
	}
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		addMetadata(request, offsets)
		return nil
	})
	done := make(chan error, 1)
	c.begin(func() {
		c.client.CommitOffsets(ctx, byTopic(offsets), func(
			_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
		) {
			cancel()
			done <- commitError(answer, err)
		})
	})
	if wait {
		return <-done
	}
	go func() {
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "commit:", err)
		}
	}()
	return nil
}

func addMetadata(request *kmsg.OffsetCommitRequest, offsets []lines.Offset) {
	for _, topic := range request.Topics {
		for number := range topic.Partitions {
			for _, each := range offsets {
				if each.Topic == topic.Topic && each.Number == topic.Partitions[number].Partition {
					topic.Partitions[number].Metadata = kmsg.StringPtr(each.Metadata)
				}
			}
		}
	}
}

func commitError(answer *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, topic := range answer.Topics {
		for _, each := range topic.Partitions {
			if err := kerr.ErrorForCode(each.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func byTopic(offsets []lines.Offset) map[string]map[int32]kgo.EpochOffset {
	found := map[string]map[int32]kgo.EpochOffset{}
	for _, each := range offsets {
		if found[each.Topic] == nil {
			found[each.Topic] = map[int32]kgo.EpochOffset{}
		}
		found[each.Topic][each.Number] = kgo.EpochOffset{Epoch: -1, Offset: each.At}
	}
	return found
}

func (c *consumer) Committed(partitions []lines.Partition) ([]*lines.Committed, error) {
	ctx, cancel := within()
	defer cancel()
	answers, err := c.admin.FetchOffsets(ctx, c.group)
	if err == nil {
		err = answers.Error()
	}
	found := []*lines.Committed{}
	for _, each := range partitions {
		if answer, ok := answers.Lookup(each.Topic, each.Number); ok && answer.At >= 0 {
			found = append(found, &lines.Committed{At: answer.At, Metadata: answer.Metadata})
		} else {
			found = append(found, nil)
		}
	}
	return found, err
}

func (c *consumer) Position(lines.Partition) (int64, error) {
	return 0, lines.Cannot("no position")
}

func (c *consumer) Seek(partition lines.Partition, where lines.Where) error {
	ctx, cancel := within()
	defer cancel()
	switch {
	case where.Beginning:
		return c.seekTo(partition)(c.admin.ListStartOffsets(ctx, partition.Topic))
	case where.End:
		return c.seekTo(partition)(c.admin.ListEndOffsets(ctx, partition.Topic))
	}
	return c.seek(partition, where.At)
}

func (c *consumer) SeekToTime(partition lines.Partition, timestampMs int64) error {
	ctx, cancel := within()
	defer cancel()
	return c.seekTo(partition)(c.admin.ListOffsetsAfterMilli(ctx, timestampMs, partition.Topic))
}

func (c *consumer) seekTo(partition lines.Partition) func(kadm.ListedOffsets, error) error {
	return func(listed kadm.ListedOffsets, err error) error {
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return err
		}
		found, _ := listed.Lookup(partition.Topic, partition.Number)
		return c.seek(partition, found.Offset)
	}
}

func (c *consumer) seek(partition lines.Partition, at int64) error {
	return c.do(func() error {
		c.client.SetOffsets(byTopic([]lines.Offset{{Partition: partition, At: at}}))
		return nil
	})
}

func (c *consumer) Pause(partitions []lines.Partition) error {
	c.client.PauseFetchPartitions(lines.ByTopic(partitions))
	return nil
}

func (c *consumer) Resume(partitions []lines.Partition) error {
	c.client.ResumeFetchPartitions(lines.ByTopic(partitions))
	return nil
}

func (c *consumer) Stall(ms int) error {
	c.begin(func() { time.Sleep(time.Duration(ms) * time.Millisecond) })
	return nil
}

// Close polls once more, which tells the client that all records before were dealt with.
func (c *consumer) Close() error {
	return c.do(func() error {
		c.closed = true
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.client.PollFetches(ctx)
		c.client.Close()
		return nil
	})
}
