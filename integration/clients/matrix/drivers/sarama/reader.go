package main

import (
	"errors"

	"github.com/IBM/sarama"

	lines "kshim/golines"
)

// reader of partitions without a group.
type reader struct {
	*lines.Feed
	client   sarama.Client
	consumer sarama.Consumer
	claims   map[lines.Partition]sarama.PartitionConsumer
}

func (d *driver) openReader(a lines.Open, config *sarama.Config) (lines.Consumer, error) {
	client, err := sarama.NewClient(d.bootstrap, config)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	opened := &reader{lines.NewFeed(), client, consumer, map[lines.Partition]sarama.PartitionConsumer{}}
	partitions := a.Partitions
	for _, topic := range a.Topics {
		numbers, err := consumer.Partitions(topic)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		partitions = append(partitions, lines.Of(map[string][]int32{topic: numbers})...)
	}
	for _, each := range partitions {
		if err := opened.read(each, config.Consumer.Offsets.Initial); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
	}
	return opened, nil
}

func (r *reader) read(where lines.Partition, at int64) error {
	claim, err := r.consumer.ConsumePartition(where.Topic, where.Number, at)
	if err != nil {
		return err
	}
	r.claims[where] = claim
	go func() {
		for message := range claim.Messages() {
			r.Add(received(message))
		}
	}()
	go func() {
		for err := range claim.Errors() {
			r.Fail(err)
		}
	}()
	return nil
}

func (r *reader) Assignment() ([]lines.Partition, error) {
	found := []lines.Partition{}
	for each := range r.claims {
		found = append(found, each)
	}
	return found, nil
}

func (r *reader) Commit([]lines.Offset, bool) error {
	return lines.Cannot("no commit without a group")
}

func (r *reader) Committed([]lines.Partition) ([]*lines.Committed, error) {
	return nil, lines.Cannot("no commit without a group")
}

func (r *reader) Position(lines.Partition) (int64, error) {
	return 0, lines.Cannot("no position")
}

func (r *reader) Seek(where lines.Partition, to lines.Where) error {
	at := to.At
	switch {
	case to.Beginning:
		at = sarama.OffsetOldest
	case to.End:
		at = sarama.OffsetNewest
	}
	if claim := r.claims[where]; claim != nil {
		if err := claim.Close(); err != nil {
			return err
		}
	}
	return r.read(where, at)
}

func (r *reader) SeekToTime(where lines.Partition, timestampMs int64) error {
	at, err := r.client.GetOffset(where.Topic, where.Number, timestampMs)
	if err != nil {
		return err
	}
	return r.Seek(where, lines.Where{At: at, End: at < 0})
}

func (r *reader) Pause(partitions []lines.Partition) error {
	r.consumer.Pause(lines.ByTopic(partitions))
	return nil
}

func (r *reader) Resume(partitions []lines.Partition) error {
	r.consumer.Resume(lines.ByTopic(partitions))
	return nil
}

func (r *reader) Stall(int) error {
	return lines.Cannot("only a member of a group is replaced")
}

// Close all at once: each waits for the end of a fetch.
func (r *reader) Close() error {
	for _, each := range r.claims {
		each.AsyncClose()
	}
	failures := []error{}
	for _, each := range r.claims {
		failures = append(failures, each.Close())
	}
	return errors.Join(append(failures, r.consumer.Close(), r.client.Close())...)
}
