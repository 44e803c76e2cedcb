package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	lines "kshim/golines"
)

var assignors = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func (d *driver) Open(a lines.Open) (lines.Consumer, error) {
	if a.MaxPollIntervalMs != nil {
		return nil, lines.Cannot("no max.poll.interval.ms: a member that does not read stays one")
	}
	if a.Pattern != "" {
		return nil, lines.Cannot("no subscription to a pattern")
	}
	config := newConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if a.Reset == "latest" {
		config.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	if a.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if a.Group == "" || a.Partitions != nil {
		return d.openReader(a, config)
	}
	session := time.Duration(a.SessionTimeoutMs) * time.Millisecond
	config.Consumer.Group.Session.Timeout = session
	config.Consumer.Group.Heartbeat.Interval = session / 4
	config.Consumer.Group.InstanceId = a.Instance
	config.Consumer.Offsets.AutoCommit.Enable = a.AutoCommit
	if len(a.Assignors) > 0 {
		config.Consumer.Group.Rebalance.GroupStrategies = nil
	}
	for _, each := range a.Assignors {
		if assignors[each] == nil {
			return nil, lines.Cannot("no assignor " + each)
		}
		config.Consumer.Group.Rebalance.GroupStrategies = append(
			config.Consumer.Group.Rebalance.GroupStrategies, assignors[each](),
		)
	}
	group, err := sarama.NewConsumerGroup(d.bootstrap, a.Group, config)
	if err != nil {
		return nil, err
	}
	opened := &member{
		Feed:       lines.NewFeed(),
		driver:     d,
		name:       a.Group,
		group:      group,
		autoCommit: a.AutoCommit,
		commits:    a.CommitOnRevoke,
		positions:  map[lines.Partition]int64{},
		ended:      make(chan struct{}),
	}
	go opened.run(a.Topics)
	go func() {
		for err := range group.Errors() {
			opened.Fail(err)
		}
	}()
	return opened, nil
}

// member of a group; the client calls Setup, ConsumeClaim for each partition, and Cleanup.
type member struct {
	*lines.Feed
	driver     *driver
	name       string
	group      sarama.ConsumerGroup
	autoCommit bool
	commits    bool // before partitions are given up
	mu         sync.Mutex
	session    sarama.ConsumerGroupSession
	positions  map[lines.Partition]int64
	stalled    sync.Mutex
	ended      chan struct{}
}

func (m *member) run(topics []string) {
	defer close(m.ended)
	for {
		err := m.group.Consume(context.Background(), topics, m)
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
		if err != nil {
			m.Fail(err)
		}
	}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	m.session = session
	m.mu.Unlock()
	m.Assigned(lines.Of(session.Claims()))
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	if m.commits {
		for where, at := range m.positions {
			session.MarkOffset(where.Topic, where.Number, at, "")
		}
		session.Commit()
	}
	m.session = nil
	clear(m.positions)
	m.mu.Unlock()
	m.Revoked(lines.Of(session.Claims()))
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	where := lines.Partition{Topic: claim.Topic(), Number: claim.Partition()}
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			m.stalled.Lock()
			m.stalled.Unlock()
			m.mu.Lock()
			m.positions[where] = message.Offset + 1
			m.mu.Unlock()
			if m.autoCommit {
				session.MarkMessage(message, "")
			}
			m.Add(received(message))
		case <-session.Context().Done():
			return nil
		}
	}
}

// Assignment: a cooperative rebalance changes the claims within a session, and calls nothing.
func (m *member) Assignment() ([]lines.Partition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == nil {
		return []lines.Partition{}, nil
	}
	return lines.Of(m.session.Claims()), nil
}

func (m *member) Commit(offsets []lines.Offset, wait bool) error {
	if !wait && !m.autoCommit {
		return lines.Cannot("every commit is waited for")
	}
	m.mu.Lock()
	session := m.session
	if offsets == nil {
		for where, at := range m.positions {
			offsets = append(offsets, lines.Offset{Partition: where, At: at})
		}
	}
	m.mu.Unlock()
	if session == nil {
		return errors.New("the member has no session")
	}
	for _, each := range offsets {
		// The first goes forward only, the second backward only.
		session.MarkOffset(each.Topic, each.Number, each.At, each.Metadata)
		session.ResetOffset(each.Topic, each.Number, each.At, each.Metadata)
	}
	if wait {
		session.Commit()
	}
	return nil
}

func (m *member) Committed(partitions []lines.Partition) ([]*lines.Committed, error) {
	return with(m.driver, func(admin sarama.ClusterAdmin) ([]*lines.Committed, error) {
		answer, err := admin.ListConsumerGroupOffsets(m.name, lines.ByTopic(partitions))
		if err != nil {
			return nil, err
		}
		if answer.Err != sarama.ErrNoError {
			return nil, answer.Err
		}
		found := []*lines.Committed{}
		for _, each := range partitions {
			block := answer.GetBlock(each.Topic, each.Number)
			switch {
			case block == nil || block.Offset < 0:
				found = append(found, nil)
			case block.Err != sarama.ErrNoError:
				return nil, block.Err
			default:
				found = append(found, &lines.Committed{At: block.Offset, Metadata: block.Metadata})
			}
		}
		return found, nil
	})
}

func (m *member) Position(lines.Partition) (int64, error) {
	return 0, lines.Cannot("no position")
}

func (m *member) Seek(lines.Partition, lines.Where) error {
	return lines.Cannot("a member of a group cannot seek")
}

func (m *member) SeekToTime(lines.Partition, int64) error {
	return lines.Cannot("a member of a group cannot seek")
}

func (m *member) Pause(partitions []lines.Partition) error {
	m.group.Pause(lines.ByTopic(partitions))
	return nil
}

func (m *member) Resume(partitions []lines.Partition) error {
	m.group.Resume(lines.ByTopic(partitions))
	return nil
}

func (m *member) Stall(ms int) error {
	m.stalled.Lock()
	time.AfterFunc(time.Duration(ms)*time.Millisecond, m.stalled.Unlock)
	return nil
}

func (m *member) Close() error {
	err := m.group.Close()
	<-m.ended
	return err
}
