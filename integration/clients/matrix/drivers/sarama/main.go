// A driver of sarama.
package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/IBM/sarama"

	lines "kshim/golines"
)

type driver struct {
	bootstrap []string
}

func main() {
	lines.Serve("sarama", "github.com/IBM/sarama", &driver{os.Args[1:2]})
}

// newConfig is patient, as other clients are by default: a broker may know a new topic only after a while.
func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.Retry.Max = 100
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Producer.Retry.Max = 100
	config.Metadata.RefreshFrequency = 500 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Producer.Return.Successes = true
	return config
}

// ---- records

func encoder(text *string) sarama.Encoder {
	if text == nil {
		return nil
	}
	return sarama.StringEncoder(*text)
}

func message(topic string, sent lines.Record) *sarama.ProducerMessage {
	made := &sarama.ProducerMessage{Topic: topic, Key: encoder(sent.Key), Value: encoder(sent.Value)}
	if sent.Partition != nil {
		made.Partition = *sent.Partition
	}
	if sent.Timestamp != nil {
		made.Timestamp = time.UnixMilli(*sent.Timestamp)
	}
	for _, each := range sent.Headers {
		made.Headers = append(
			made.Headers, sarama.RecordHeader{Key: []byte(each.Name), Value: lines.Bytes(each.Value)},
		)
	}
	return made
}

func received(message *sarama.ConsumerMessage) lines.Received {
	headers := []lines.Header{}
	for _, each := range message.Headers {
		headers = append(headers, lines.Header{Name: string(each.Key), Value: lines.Text(each.Value)})
	}
	return lines.Received{
		Topic:     message.Topic,
		Partition: message.Partition,
		Offset:    message.Offset,
		Key:       lines.Text(message.Key),
		Value:     lines.Text(message.Value),
		Headers:   headers,
		Timestamp: message.Timestamp.UnixMilli(),
	}
}

func (d *driver) Produce(a lines.Produce) ([][2]int64, error) {
	config := newConfig()
	config.Producer.RequiredAcks = sarama.RequiredAcks(a.Acks)
	if err := config.Producer.Compression.UnmarshalText([]byte(a.Compression)); err != nil {
		return nil, err
	}
	if a.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	messages := []*sarama.ProducerMessage{}
	for _, each := range a.Records {
		if each.Partition != nil {
			config.Producer.Partitioner = sarama.NewManualPartitioner
		}
		messages = append(messages, message(a.Topic, each))
	}
	producer, err := sarama.NewSyncProducer(d.bootstrap, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if err := producer.SendMessages(messages); err != nil {
		return nil, first(err)
	}
	found := [][2]int64{}
	for _, each := range messages {
		if a.Acks == 0 {
			each.Offset = -1
		}
		found = append(found, [2]int64{int64(each.Partition), each.Offset})
	}
	return found, nil
}

// first of the errors that a producer only counts.
func first(err error) error {
	var several sarama.ProducerErrors
	if errors.As(err, &several) {
		return several[0].Err
	}
	return err
}

// ---- transactions

func (d *driver) Transact(a lines.Transact) error {
	config := newConfig()
	config.Producer.Transaction.ID = a.ID
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(d.bootstrap, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	messages := []*sarama.ProducerMessage{}
	for _, each := range a.Records {
		messages = append(messages, message(each.Topic, each.Record))
	}
	if err := producer.SendMessages(messages); err != nil {
		return first(err)
	}
	if a.Group != "" {
		offsets := map[string][]*sarama.PartitionOffsetMetadata{}
		for _, each := range a.Offsets {
			offsets[each.Topic] = append(offsets[each.Topic], &sarama.PartitionOffsetMetadata{
				Partition: each.Number, Offset: each.At, LeaderEpoch: -1, Metadata: &each.Metadata,
			})
		}
		if err := producer.AddOffsetsToTxn(offsets, a.Group); err != nil {
			return err
		}
	}
	if a.End == "commit" {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}

// ---- admin

func with[T any](d *driver, do func(sarama.ClusterAdmin) (T, error)) (T, error) {
	admin, err := sarama.NewClusterAdmin(d.bootstrap, newConfig())
	if err != nil {
		var none T
		return none, err
	}
	defer admin.Close()
	return do(admin)
}

func (d *driver) admin(do func(sarama.ClusterAdmin) error) error {
	_, err := with(d, func(admin sarama.ClusterAdmin) (any, error) { return nil, do(admin) })
	return err
}

func (d *driver) CreateTopic(a lines.Topic) error {
	return d.admin(func(admin sarama.ClusterAdmin) error {
		detail := sarama.TopicDetail{
			NumPartitions: a.Partitions, ReplicationFactor: 1, ConfigEntries: a.Configs,
		}
		return admin.CreateTopic(a.Topic, &detail, false)
	})
}

func (d *driver) DeleteTopic(topic string) error {
	return d.admin(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

func (d *driver) GrowTopic(topic string, partitions int32) error {
	return d.admin(func(admin sarama.ClusterAdmin) error {
		return admin.CreatePartitions(topic, partitions, nil, false)
	})
}

func (d *driver) Topics() ([]string, error) {
	return with(d, func(admin sarama.ClusterAdmin) ([]string, error) {
		found, err := admin.ListTopics()
		return slices.Sorted(maps.Keys(found)), err
	})
}

func (d *driver) Ends(topic string) ([][2]int64, error) {
	client, err := sarama.NewClient(d.bootstrap, newConfig())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, err
	}
	found := make([][2]int64, len(partitions))
	for number := range found {
		for side, time := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
			if found[number][side], err = client.GetOffset(topic, int32(number), time); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (d *driver) Configs(topic string) (map[string]*string, error) {
	return with(d, func(admin sarama.ClusterAdmin) (map[string]*string, error) {
		entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		found := map[string]*string{}
		for _, each := range entries {
			found[each.Name] = &each.Value
		}
		return found, err
	})
}

func (d *driver) AlterConfigs(topic string, configs map[string]*string) error {
	return d.admin(func(admin sarama.ClusterAdmin) error {
		entries := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range configs {
			entries[name] = sarama.IncrementalAlterConfigsEntry{
				Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
			}
		}
		return admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	})
}

func (d *driver) Groups() ([]string, error) {
	return with(d, func(admin sarama.ClusterAdmin) ([]string, error) {
		found, err := admin.ListConsumerGroups()
		return slices.Sorted(maps.Keys(found)), err
	})
}

func (d *driver) Group(name string) (lines.Group, error) {
	return with(d, func(admin sarama.ClusterAdmin) (lines.Group, error) {
		described, err := admin.DescribeConsumerGroups([]string{name})
		if err != nil {
			return lines.Group{}, err
		}
		if described[0].Err != sarama.ErrNoError {
			return lines.Group{}, described[0].Err
		}
		return lines.Group{State: described[0].State, Members: len(described[0].Members)}, nil
	})
}

func (d *driver) DeleteGroup(name string) error {
	return d.admin(func(admin sarama.ClusterAdmin) error { return admin.DeleteConsumerGroup(name) })
}

func (d *driver) DeleteRecords(partition lines.Partition, offset int64) error {
	return d.admin(func(admin sarama.ClusterAdmin) error {
		return admin.DeleteRecords(partition.Topic, map[int32]int64{partition.Number: offset})
	})
}
