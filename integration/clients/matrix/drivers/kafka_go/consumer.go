package main

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	lines "kshim/golines"
)

var assignors = map[string]kafka.GroupBalancer{
	"range":      kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{},
}

// mostReaders: a thousand do not get their connections within a scenario's time, with any broker.
const mostReaders = 200

// consumer has a reader for each of its partitions. With a group, its generations say which these are.
type consumer struct {
	*lines.Feed
	driver     *driver
	options    lines.Open
	group      *kafka.ConsumerGroup
	mu         sync.Mutex
	generation *kafka.Generation
	readers    map[lines.Partition]*kafka.Reader
	positions  map[lines.Partition]int64
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

func (d *driver) Open(a lines.Open) (lines.Consumer, error) {
	switch {
	case a.MaxPollIntervalMs != nil:
		return nil, lines.Cannot("no max.poll.interval.ms: a member that does not read stays one")
	case a.CommitOnRevoke:
		return nil, lines.Cannot("no callback before partitions are given up")
	case a.Pattern != "":
		return nil, lines.Cannot("no subscription to a pattern")
	case a.Instance != "":
		return nil, lines.Cannot("no static members")
	}
	opened := &consumer{
		Feed:      lines.NewFeed(),
		driver:    d,
		options:   a,
		readers:   map[lines.Partition]*kafka.Reader{},
		positions: map[lines.Partition]int64{},
	}
	if a.Group == "" || a.Partitions != nil {
		return opened, opened.readAll()
	}
	return opened, opened.join()
}

// start is where a partition is read from that has no committed offset.
func (c *consumer) start() int64 {
	if c.options.Reset == "latest" {
		return kafka.LastOffset
	}
	return kafka.FirstOffset
}

// ---- without a group

func (c *consumer) readAll() error {
	partitions := c.options.Partitions
	if len(c.options.Topics) > 0 {
		found, err := c.driver.partitions(c.options.Topics...)
		if err != nil {
			return err
		}
		for _, each := range found {
			partitions = append(partitions, lines.Partition{Topic: each.Topic, Number: int32(each.ID)})
		}
	}
	if len(partitions) > mostReaders {
		return lines.Cannot("no reader of many partitions: each has connections of its own")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for _, each := range partitions {
		reader, err := c.open(each, c.start())
		if err != nil {
			return err
		}
		c.running.Go(func() { c.read(ctx, each, reader) })
	}
	c.Assigned(partitions)
	return nil
}

func (c *consumer) open(where lines.Partition, at int64) (*kafka.Reader, error) {
	isolation := kafka.ReadUncommitted
	if c.options.Isolation == "read_committed" {
		isolation = kafka.ReadCommitted
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:               []string{c.driver.bootstrap},
		Topic:                 where.Topic,
		Partition:             int(where.Number),
		MinBytes:              1,
		MaxBytes:              10_000_000,
		MaxWait:               500 * time.Millisecond,
		IsolationLevel:        isolation,
		OffsetOutOfRangeError: true,
	})
	c.mu.Lock()
	c.readers[where] = reader
	c.mu.Unlock()
	return reader, reader.SetOffset(at)
}

// read until the context ends.
func (c *consumer) read(ctx context.Context, where lines.Partition, reader *kafka.Reader) {
	for {
		message, err := reader.ReadMessage(ctx)
		switch {
		case ctx.Err() != nil:
			if err := reader.Close(); err != nil {
				c.Fail(err)
			}
			return
		case errors.Is(err, kafka.OffsetOutOfRange): // the client leaves it to the application
			err = reader.SetOffset(c.start())
			if err != nil {
				c.Fail(err)
			}
		case err != nil:
			c.Fail(err)
		default:
			c.mu.Lock()
			c.positions[where] = message.Offset + 1
			c.mu.Unlock()
			c.Add(received(message))
		}
	}
}

// ---- with a group

func (c *consumer) join() error {
	session := time.Duration(c.options.SessionTimeoutMs) * time.Millisecond
	config := kafka.ConsumerGroupConfig{
		ID:                     c.options.Group,
		Brokers:                []string{c.driver.bootstrap},
		Topics:                 c.options.Topics,
		SessionTimeout:         session,
		HeartbeatInterval:      session / 4,
		StartOffset:            c.start(),
		WatchPartitionChanges:  true,
		PartitionWatchInterval: 500 * time.Millisecond,
	}
	for _, each := range c.options.Assignors {
		if assignors[each] == nil {
			return lines.Cannot("no assignor " + each)
		}
		config.GroupBalancers = append(config.GroupBalancers, assignors[each])
	}
	group, err := kafka.NewConsumerGroup(config)
	if err != nil {
		return err
	}
	c.group = group
	c.running.Go(c.generations)
	return nil
}

func (c *consumer) generations() {
	for {
		generation, err := c.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			c.Fail(err)
			continue
		}
		c.begin(generation)
	}
}

// begin reads the generation's partitions until it ends. The client waits for the functions that it starts.
func (c *consumer) begin(generation *kafka.Generation) {
	offsets := map[lines.Partition]int64{}
	partitions := []lines.Partition{}
	for topic, assigned := range generation.Assignments {
		for _, each := range assigned {
			where := lines.Partition{Topic: topic, Number: int32(each.ID)}
			offsets[where] = each.Offset
			partitions = append(partitions, where)
		}
	}
	c.mu.Lock()
	c.generation = generation
	clear(c.readers)
	clear(c.positions)
	c.mu.Unlock()
	c.Assigned(partitions)
	generation.Start(func(ctx context.Context) {
		var readers sync.WaitGroup
		for where, at := range offsets {
			readers.Go(func() {
				reader, err := c.open(where, at)
				if err != nil {
					c.Fail(err)
				}
				c.read(ctx, where, reader)
			})
		}
		readers.Wait()
		if c.options.AutoCommit { // as the client's example does
			if err := c.commitRead(generation); err != nil {
				c.Fail(err)
			}
		}
		c.mu.Lock()
		c.generation = nil
		c.mu.Unlock()
		c.Revoked(partitions)
	})
}

func (c *consumer) commitRead(generation *kafka.Generation) error {
	c.mu.Lock()
	offsets := map[string]map[int]int64{}
	for where, at := range maps.All(c.positions) {
		if offsets[where.Topic] == nil {
			offsets[where.Topic] = map[int]int64{}
		}
		offsets[where.Topic][int(where.Number)] = at
	}
	c.mu.Unlock()
	return generation.CommitOffsets(offsets)
}

func (c *consumer) Commit(offsets []lines.Offset, wait bool) error {
	if !wait {
		return lines.Cannot("every commit is waited for")
	}
	c.mu.Lock()
	generation := c.generation
	c.mu.Unlock()
	if generation == nil {
		return errors.New("the member is in no generation")
	}
	if offsets == nil {
		return c.commitRead(generation)
	}
	ctx, cancel := within()
	defer cancel()
	answer, err := c.driver.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID:      generation.GroupID,
		GenerationID: int(generation.ID),
		MemberID:     generation.MemberID,
		Topics: byTopic(offsets, func(each lines.Offset) kafka.OffsetCommit {
			return kafka.OffsetCommit{Partition: int(each.Number), Offset: each.At, Metadata: each.Metadata}
		}),
	})
	if err != nil {
		return err
	}
	for _, partitions := range answer.Topics {
		for _, each := range partitions {
			err = errors.Join(err, each.Error)
		}
	}
	return err
}

func (c *consumer) Committed(partitions []lines.Partition) ([]*lines.Committed, error) {
	ctx, cancel := within()
	defer cancel()
	topics := map[string][]int{}
	for _, each := range partitions {
		topics[each.Topic] = append(topics[each.Topic], int(each.Number))
	}
	answer, err := c.driver.client.OffsetFetch(
		ctx, &kafka.OffsetFetchRequest{GroupID: c.options.Group, Topics: topics},
	)
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return nil, err
	}
	found := make([]*lines.Committed, len(partitions))
	for index, where := range partitions {
		for _, each := range answer.Topics[where.Topic] {
			if each.Error != nil {
				return nil, each.Error
			}
			if each.Partition == int(where.Number) && each.CommittedOffset >= 0 {
				found[index] = &lines.Committed{At: each.CommittedOffset, Metadata: each.Metadata}
			}
		}
	}
	return found, nil
}

// ---- positions

func (c *consumer) reader(where lines.Partition) (*kafka.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers[where] == nil {
		return nil, errors.New("the partition is not assigned")
	}
	return c.readers[where], nil
}

func (c *consumer) Position(where lines.Partition) (int64, error) {
	reader, err := c.reader(where)
	if err != nil {
		return 0, err
	}
	at := reader.Offset()
	if at < 0 {
		return 0, lines.Cannot("no position before the first record")
	}
	return at, nil
}

func (c *consumer) Seek(where lines.Partition, to lines.Where) error {
	reader, err := c.reader(where)
	if err != nil {
		return err
	}
	first, last, err := c.driver.bounds(where)
	switch {
	case err != nil:
		return err
	case to.Beginning:
		return reader.SetOffset(first)
	case to.End:
		return reader.SetOffset(last)
	}
	return reader.SetOffset(to.At)
}

func (c *consumer) SeekToTime(where lines.Partition, timestampMs int64) error {
	reader, err := c.reader(where)
	if err != nil {
		return err
	}
	ctx, cancel := within()
	defer cancel()
	return reader.SetOffsetAt(ctx, time.UnixMilli(timestampMs))
}

func (c *consumer) Pause([]lines.Partition) error  { return lines.Cannot("no pause") }
func (c *consumer) Resume([]lines.Partition) error { return lines.Cannot("no resume") }
func (c *consumer) Stall(int) error                { return lines.Cannot("no stall") }

func (c *consumer) Close() error {
	var err error
	if c.group != nil {
		err = c.group.Close()
	}
	if c.cancel != nil {
		c.cancel()
	}
	c.running.Wait()
	return err
}
