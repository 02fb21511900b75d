// A transactional producer, and readers: what programs.py says of all of them.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var (
	settings = map[string]string{}
	producer sarama.SyncProducer
)

func servers() []string { return strings.Split(settings["bootstrap.servers"], ",") }

func number(text string) int64 {
	found, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func configured(isolation string) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 100
	if isolation == "committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	return config
}

func start() error {
	config := configured("")
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = settings["transactional.id"]
	config.Producer.Transaction.Timeout = time.Duration(number(settings["transaction.timeout.ms"])) * time.Millisecond
	config.Producer.Transaction.Retry.Max = 100
	var err error
	// While the transaction of the producer before is aborted, the client leaves it to its user to try again.
	for producer, err = sarama.NewSyncProducer(servers(), config); errors.Is(err, sarama.ErrConcurrentTransactions); {
		producer, err = sarama.NewSyncProducer(servers(), config)
	}
	return err
}

func end(topic, isolation string) (int64, error) {
	config := configured(isolation)
	client, err := sarama.NewClient(servers(), config)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	leader, err := client.Leader(topic, 0)
	if err != nil {
		return 0, err
	}
	asking := &sarama.OffsetRequest{Version: 2, IsolationLevel: config.Consumer.IsolationLevel}
	asking.AddBlock(topic, 0, sarama.OffsetNewest, 1)
	answer, err := leader.GetAvailableOffsets(asking)
	if err != nil {
		return 0, err
	}
	block := answer.GetBlock(topic, 0)
	if block.Err != sarama.ErrNoError {
		return 0, block.Err
	}
	return block.Offset, nil
}

func read(topic, isolation string) (string, error) {
	consumer, err := sarama.NewConsumer(servers(), configured(isolation))
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return "", err
	}
	defer partition.Close()
	var found []string
	for !slices.Contains(found, "last") {
		found = append(found, string((<-partition.Messages()).Value))
	}
	return strings.Join(found, ","), nil
}

func obey(words []string) (string, error) {
	switch words[0] {
	case "init":
		return "done", start()
	case "begin":
		return "done", producer.BeginTxn()
	case "send":
		message := &sarama.ProducerMessage{
			Topic: words[1], Partition: int32(number(words[2])), Value: sarama.StringEncoder(words[3]),
		}
		_, _, err := producer.SendMessage(message)
		return "done", err
	case "offsets":
		offset := &sarama.PartitionOffsetMetadata{Partition: int32(number(words[3])), Offset: number(words[4])}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{words[2]: {offset}}
		return "done", producer.AddOffsetsToTxn(offsets, words[1])
	case "commit":
		return "done", producer.CommitTxn()
	case "abort":
		return "done", producer.AbortTxn()
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
	var known sarama.KError
	if errors.As(err, &known) {
		return strconv.Itoa(int(known))
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
