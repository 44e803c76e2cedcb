// A driver of franz-go.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	lines "kshim/golines"
)

const timeout = 40 * time.Second

var assignors = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

// serverAssignors are the balancers for which the client asks for an assignor of the consumer protocol.
var serverAssignors = map[string]func() kgo.GroupBalancer{
	"range":   kgo.RangeBalancer,
	"uniform": kgo.StickyBalancer,
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int16]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}

type driver struct {
	bootstrap string
	admin     *kadm.Client
}

func main() {
	options := append(secured, kgo.SeedBrokers(os.Args[1]), kgo.MetadataMinAge(100*time.Millisecond))
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	lines.Serve("franz-go", "github.com/twmb/franz-go", &driver{os.Args[1], kadm.NewClient(client)})
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), timeout)
}

// ---- records

func record(topic string, sent lines.Record) *kgo.Record {
	made := &kgo.Record{Topic: topic, Key: lines.Bytes(sent.Key), Value: lines.Bytes(sent.Value)}
	if sent.Partition != nil {
		made.Partition = *sent.Partition
	}
	if sent.Timestamp != nil {
		made.Timestamp = time.UnixMilli(*sent.Timestamp)
	}
	for _, each := range sent.Headers {
		made.Headers = append(made.Headers, kgo.RecordHeader{Key: each.Name, Value: lines.Bytes(each.Value)})
	}
	return made
}

func received(record *kgo.Record) lines.Received {
	headers := []lines.Header{}
	for _, each := range record.Headers {
		headers = append(headers, lines.Header{Name: each.Key, Value: lines.Text(each.Value)})
	}
	return lines.Received{
		Topic:     record.Topic,
		Partition: record.Partition,
		Offset:    record.Offset,
		Key:       lines.Text(record.Key),
		Value:     lines.Text(record.Value),
		Headers:   headers,
		Timestamp: record.Timestamp.UnixMilli(),
	}
}

func (d *driver) Produce(a lines.Produce) ([][2]int64, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.RequiredAcks(acks[a.Acks]),
		kgo.ProducerBatchCompression(codecs[a.Compression]),
	}
	options = append(options, secured...)
	if !a.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	records := []*kgo.Record{}
	named := false
	for _, each := range a.Records {
		named = named || each.Partition != nil
		records = append(records, record(a.Topic, each))
	}
	if named {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := within()
	defer cancel()
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	found := [][2]int64{}
	for _, each := range records {
		found = append(found, [2]int64{int64(each.Partition), each.Offset})
	}
	return found, nil
}

// ---- transactions

func (d *driver) Transact(a lines.Transact) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.TransactionalID(a.ID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	options = append(options, secured...)
	records := []*kgo.Record{}
	for _, each := range a.Records {
		records = append(records, record(each.Topic, each.Record))
	}
	end := kgo.TransactionEndTry(a.End == "commit")
	ctx, cancel := within()
	defer cancel()
	if a.Group != "" {
		return transactInGroup(ctx, a, options, records, end)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(ctx, end)
}

// transactInGroup commits the offsets as the client does: it consumes up to them in the group.
func transactInGroup(
	ctx context.Context, a lines.Transact, options []kgo.Opt, records []*kgo.Record, end kgo.TransactionEndTry,
) error {
	topics, missing := []string{}, map[lines.Partition]int64{}
	for _, each := range a.Offsets {
		topics = append(topics, each.Topic)
		missing[each.Partition] = each.At
	}
	session, err := kgo.NewGroupTransactSession(append(
		options,
		kgo.ConsumerGroup(a.Group),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return err
	}
	for len(missing) > 0 {
		fetches := session.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			where := lines.Partition{Topic: record.Topic, Number: record.Partition}
			if at, found := missing[where]; found && record.Offset+1 >= at {
				delete(missing, where)
				session.Client().PauseFetchPartitions(lines.ByTopic([]lines.Partition{where}))
			}
		})
	}
	if err := session.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	committed, err := session.End(ctx, end)
	if err == nil && committed != bool(end) {
		err = errors.New("the transaction was aborted")
	}
	return err
}

// ---- admin

func (d *driver) CreateTopic(a lines.Topic) error {
	ctx, cancel := within()
	defer cancel()
	_, err := d.admin.CreateTopic(ctx, a.Partitions, 1, a.Configs, a.Topic)
	return err
}

func (d *driver) DeleteTopic(topic string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := d.admin.DeleteTopic(ctx, topic)
	return err
}

func (d *driver) GrowTopic(topic string, partitions int32) error {
	ctx, cancel := within()
	defer cancel()
	found, err := d.admin.UpdatePartitions(ctx, int(partitions), topic)
	if err == nil {
		err = found.Error()
	}
	return err
}

func (d *driver) Topics() ([]string, error) {
	ctx, cancel := within()
	defer cancel()
	found, err := d.admin.ListTopics(ctx)
	return found.Names(), err
}

func (d *driver) Ends(topic string) ([][2]int64, error) {
	ctx, cancel := within()
	defer cancel()
	first, err := d.admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return nil, err
	}
	end, err := d.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = end.Error()
	}
	if err != nil {
		return nil, err
	}
	found := make([][2]int64, len(end[topic]))
	for number := range found {
		found[number] = [2]int64{first[topic][int32(number)].Offset, end[topic][int32(number)].Offset}
	}
	return found, nil
}

func (d *driver) Configs(topic string) (map[string]*string, error) {
	ctx, cancel := within()
	defer cancel()
	described, err := d.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	resource, err := described.On(topic, nil)
	if err == nil {
		err = resource.Err
	}
	found := map[string]*string{}
	for _, each := range resource.Configs {
		found[each.Key] = each.Value
	}
	return found, err
}

func (d *driver) AlterConfigs(topic string, configs map[string]*string) error {
	ctx, cancel := within()
	defer cancel()
	named := []kadm.AlterConfig{}
	for name, value := range configs {
		named = append(named, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	answers, err := d.admin.AlterTopicConfigs(ctx, named, topic)
	if err != nil {
		return err
	}
	answer, err := answers.On(topic, nil)
	if err == nil {
		err = answer.Err
	}
	return err
}

func (d *driver) Groups() ([]string, error) {
	ctx, cancel := within()
	defer cancel()
	found, err := d.admin.ListGroups(ctx)
	return found.Groups(), err
}

func (d *driver) Group(name string) (lines.Group, error) {
	ctx, cancel := within()
	defer cancel()
	if described, err := d.admin.DescribeConsumerGroups(ctx, name); err == nil && described.Error() == nil {
		found := described[name]
		return lines.Group{State: found.State, Members: len(found.Members)}, nil
	}
	described, err := d.admin.DescribeGroups(ctx, name)
	if err == nil {
		err = described.Error()
	}
	found := described[name]
	return lines.Group{State: found.State, Members: len(found.Members)}, err
}

func (d *driver) DeleteGroup(name string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := d.admin.DeleteGroup(ctx, name)
	return err
}

func (d *driver) DeleteRecords(partition lines.Partition, offset int64) error {
	ctx, cancel := within()
	defer cancel()
	offsets := kadm.Offsets{}
	offsets.AddOffset(partition.Topic, partition.Number, offset, -1)
	found, err := d.admin.DeleteRecords(ctx, offsets)
	if err == nil {
		err = found.Error()
	}
	return err
}
