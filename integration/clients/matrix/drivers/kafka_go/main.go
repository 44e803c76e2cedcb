// A driver of kafka-go.
package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	lines "kshim/golines"
)

const timeout = 40 * time.Second

type driver struct {
	bootstrap string
	client    *kafka.Client
}

func main() {
	client := &kafka.Client{Addr: kafka.TCP(os.Args[1]), Timeout: timeout}
	lines.Serve("kafka-go", "github.com/segmentio/kafka-go", &driver{os.Args[1], client})
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), timeout)
}

// ---- records

func received(message kafka.Message) lines.Received {
	headers := []lines.Header{}
	for _, each := range message.Headers {
		headers = append(headers, lines.Header{Name: each.Key, Value: lines.Text(each.Value)})
	}
	return lines.Received{
		Topic:     message.Topic,
		Partition: int32(message.Partition),
		Offset:    message.Offset,
		Key:       lines.Text(message.Key),
		Value:     lines.Text(message.Value),
		Headers:   headers,
		Timestamp: message.Time.UnixMilli(),
	}
}

// sent is what a message of Produce carries along.
type sent struct {
	index     int
	partition *int32
}

func (d *driver) Produce(a lines.Produce) ([][2]int64, error) {
	if a.Idempotent {
		return nil, lines.Cannot("no idempotence")
	}
	var compression kafka.Compression
	if a.Compression != "none" {
		if err := compression.UnmarshalText([]byte(a.Compression)); err != nil {
			return nil, err
		}
	}
	found := make([][2]int64, len(a.Records))
	fallback := &kafka.Hash{}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(d.bootstrap),
		Topic:        a.Topic,
		RequiredAcks: kafka.RequiredAcks(a.Acks),
		Compression:  compression,
		BatchTimeout: 10 * time.Millisecond,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			if partition := message.WriterData.(sent).partition; partition != nil {
				return int(*partition)
			}
			return fallback.Balance(message, partitions...)
		}),
		Completion: func(messages []kafka.Message, err error) {
			for _, each := range messages {
				offset := each.Offset
				if a.Acks == 0 {
					offset = -1
				}
				found[each.WriterData.(sent).index] = [2]int64{int64(each.Partition), offset}
			}
		},
	}
	messages := []kafka.Message{}
	for index, each := range a.Records {
		made := kafka.Message{
			Key: lines.Bytes(each.Key), Value: lines.Bytes(each.Value), WriterData: sent{index, each.Partition},
		}
		if each.Timestamp != nil {
			made.Time = time.UnixMilli(*each.Timestamp)
		}
		for _, header := range each.Headers {
			made.Headers = append(made.Headers, kafka.Header{Key: header.Name, Value: lines.Bytes(header.Value)})
		}
		messages = append(messages, made)
	}
	ctx, cancel := within()
	defer cancel()
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		_ = writer.Close()
		return nil, err
	}
	return found, writer.Close()
}

func (d *driver) Transact(lines.Transact) error {
	return lines.Cannot("no writer of transactions")
}

// ---- admin

func (d *driver) CreateTopic(a lines.Topic) error {
	ctx, cancel := within()
	defer cancel()
	topic := kafka.TopicConfig{Topic: a.Topic, NumPartitions: int(a.Partitions), ReplicationFactor: 1}
	for name, value := range a.Configs {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: *value})
	}
	answer, err := d.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[a.Topic]
}

func (d *driver) DeleteTopic(topic string) error {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (d *driver) GrowTopic(topic string, partitions int32) error {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: partitions}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// dial: unlike the client, a connection keeps no metadata that has become old.
func (d *driver) dial() (*kafka.Conn, error) {
	ctx, cancel := within()
	defer cancel()
	return kafka.DialContext(ctx, "tcp", d.bootstrap)
}

func (d *driver) partitions(topics ...string) ([]kafka.Partition, error) {
	conn, err := d.dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ReadPartitions(topics...)
}

func (d *driver) Topics() ([]string, error) {
	partitions, err := d.partitions()
	found := []string{}
	for _, each := range partitions {
		found = append(found, each.Topic)
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

func (d *driver) Ends(topic string) ([][2]int64, error) {
	partitions, err := d.partitions(topic)
	if err != nil {
		return nil, err
	}
	found := make([][2]int64, len(partitions))
	for number := range found {
		first, last, err := d.bounds(lines.Partition{Topic: topic, Number: int32(number)})
		if err != nil {
			return nil, err
		}
		found[number] = [2]int64{first, last}
	}
	return found, nil
}

func (d *driver) bounds(where lines.Partition) (first, last int64, err error) {
	ctx, cancel := within()
	defer cancel()
	conn, err := kafka.DialLeader(ctx, "tcp", d.bootstrap, where.Topic, int(where.Number))
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	return conn.ReadOffsets()
}

func (d *driver) Configs(topic string) (map[string]*string, error) {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic},
		},
	})
	if err != nil {
		return nil, err
	}
	found := map[string]*string{}
	for _, each := range answer.Resources[0].ConfigEntries {
		found[each.ConfigName] = &each.ConfigValue
	}
	return found, answer.Resources[0].Error
}

func (d *driver) AlterConfigs(topic string, configs map[string]*string) error {
	ctx, cancel := within()
	defer cancel()
	resource := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
	}
	for name, value := range configs {
		resource.Configs = append(resource.Configs, kafka.IncrementalAlterConfigsRequestConfig{
			Name: name, Value: *value, ConfigOperation: kafka.ConfigOperationSet,
		})
	}
	answer, err := d.client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{resource},
	})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}

func (d *driver) Groups() ([]string, error) {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, each := range answer.Groups {
		found = append(found, each.GroupID)
	}
	return found, answer.Error
}

func (d *driver) Group(name string) (lines.Group, error) {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{name}})
	if err != nil {
		return lines.Group{}, err
	}
	found := answer.Groups[0]
	return lines.Group{State: found.GroupState, Members: len(found.Members)}, found.Error
}

func (d *driver) DeleteGroup(name string) error {
	ctx, cancel := within()
	defer cancel()
	answer, err := d.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{name}})
	if err != nil {
		return err
	}
	return answer.Errors[name]
}

func (d *driver) DeleteRecords(lines.Partition, int64) error {
	return lines.Cannot("no delete_records")
}

func byTopic[T any](offsets []lines.Offset, of func(lines.Offset) T) map[string][]T {
	found := map[string][]T{}
	for _, each := range offsets {
		found[each.Topic] = append(found[each.Topic], of(each))
	}
	return found
}
