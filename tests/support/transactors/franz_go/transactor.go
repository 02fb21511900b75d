// A transactional producer, and readers: what programs.py says of all of them.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	settings = map[string]string{}
	producer *kgo.Client
	ctx      = context.Background()
)

func servers() kgo.Opt {
	return kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...)
}

func number(text string) int64 {
	found, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func start() error {
	timeout := time.Duration(number(settings["transaction.timeout.ms"])) * time.Millisecond
	var err error
	producer, err = kgo.NewClient(servers(),
		kgo.TransactionalID(settings["transactional.id"]),
		kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	// While the transaction of the producer before is aborted, the client leaves it to its user to try again.
	_, _, err = producer.ProducerID(ctx)
	for err != nil && strings.Contains(err.Error(), "due to request failures") {
		_, _, err = producer.ProducerID(ctx)
	}
	return err
}

// The client has no call for offsets without a group session: the same two requests that a session sends.
func addOffsets(group, topic string, partition int32, offset int64) error {
	id, epoch, err := producer.ProducerID(ctx)
	if err != nil {
		return err
	}
	adding := kmsg.NewPtrAddOffsetsToTxnRequest()
	adding.TransactionalID, adding.Group = settings["transactional.id"], group
	adding.ProducerID, adding.ProducerEpoch = id, epoch
	added, err := adding.RequestWith(ctx, producer)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	committing := kmsg.NewPtrTxnOffsetCommitRequest()
	committing.TransactionalID, committing.Group = settings["transactional.id"], group
	committing.ProducerID, committing.ProducerEpoch = id, epoch
	row := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	row.Partition, row.Offset = partition, offset
	of := kmsg.NewTxnOffsetCommitRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.TxnOffsetCommitRequestTopicPartition{row}
	committing.Topics = []kmsg.TxnOffsetCommitRequestTopic{of}
	committed, err := committing.RequestWith(ctx, producer)
	if err == nil {
		err = kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode)
	}
	return err
}

func level(isolation string) kgo.IsolationLevel {
	if isolation == "committed" {
		return kgo.ReadCommitted()
	}
	return kgo.ReadUncommitted()
}

func end(topic, isolation string) (int64, error) {
	client, err := kgo.NewClient(servers())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	asking := kmsg.NewPtrListOffsetsRequest()
	if isolation == "committed" {
		asking.IsolationLevel = 1
	}
	row := kmsg.NewListOffsetsRequestTopicPartition()
	row.Timestamp = -1
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.ListOffsetsRequestTopicPartition{row}
	asking.Topics = []kmsg.ListOffsetsRequestTopic{of}
	answer, err := asking.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	found := answer.Topics[0].Partitions[0]
	return found.Offset, kerr.ErrorForCode(found.ErrorCode)
}

func read(topic, isolation string) (string, error) {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(servers(), kgo.ConsumePartitions(start), kgo.FetchIsolationLevel(level(isolation)))
	if err != nil {
		return "", err
	}
	defer client.Close()
	var found []string
	for !slices.Contains(found, "last") {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { found = append(found, string(record.Value)) })
	}
	return strings.Join(found, ","), nil
}

func obey(words []string) (string, error) {
	switch words[0] {
	case "init":
		return "done", start()
	case "begin":
		return "done", producer.BeginTransaction()
	case "send":
		record := &kgo.Record{Topic: words[1], Partition: int32(number(words[2])), Value: []byte(words[3])}
		return "done", producer.ProduceSync(ctx, record).FirstErr()
	case "offsets":
		return "done", addOffsets(words[1], words[2], int32(number(words[3])), number(words[4]))
	case "commit":
		return "done", producer.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		return "done", producer.EndTransaction(ctx, kgo.TryAbort)
	case "end":
		found, err := end(words[1], words[2])
		return fmt.Sprintf("found %d", found), err
	case "read":
		found, err := read(words[1], words[2])
		return "found " + found, err
	}
	return "", fmt.Errorf("unknown command %s", words[0])
}

func named(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func main() {
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		settings[name] = value
	}
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		answer, err := obey(strings.Fields(commands.Text()))
		if err != nil {
			answer = "refused " + named(err)
		}
		fmt.Println(answer)
	}
}
