// A member of a consumer group: reads, commits, and says so. Settings come as name=value, the topic is "topic".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

var sayLock sync.Mutex

func say(format string, values ...any) {
	sayLock.Lock()
	defer sayLock.Unlock()
	fmt.Printf(format+"\n", values...)
}

func settingsOf(words []string) map[string]string {
	settings := map[string]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		settings[name] = value
	}
	return settings
}

func milliseconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func told(word string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		var numbers []int
		for _, each := range partitions {
			for _, number := range each {
				numbers = append(numbers, int(number))
			}
		}
		sort.Ints(numbers)
		text := strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
		if text == "" {
			text = "-"
		}
		say("%s %s", word, text)
	}
}

func readAndCommit(ctx context.Context, client *kgo.Client) {
	polling, done := context.WithTimeout(ctx, 100*time.Millisecond)
	fetches := client.PollRecords(polling, 50)
	done()
	var records []*kgo.Record
	next := map[int32]int64{}
	fetches.EachRecord(func(record *kgo.Record) {
		say("record %d %d %s", record.Partition, record.Offset, record.Value)
		records = append(records, record)
		next[record.Partition] = record.Offset + 1
	})
	if len(records) > 0 {
		committing, done := context.WithTimeout(ctx, 20*time.Second)
		err := client.CommitRecords(committing, records...)
		done()
		if err != nil {
			say("uncommitted %s", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			for partition, offset := range next {
				say("committed %d %d", partition, offset)
			}
		}
	}
	client.AllowRebalance()
}

func main() {
	settings := settingsOf(os.Args[1:])
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...),
		kgo.ConsumerGroup(settings["group.id"]),
		kgo.ConsumeTopics(settings["topic"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancers[settings["partition.assignment.strategy"]]),
		kgo.SessionTimeout(milliseconds(settings["session.timeout.ms"])),
		kgo.HeartbeatInterval(milliseconds(settings["heartbeat.interval.ms"])),
		kgo.RebalanceTimeout(milliseconds(settings["max.poll.interval.ms"])),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(told("assigned")),
		kgo.OnPartitionsRevoked(told("revoked")),
		kgo.OnPartitionsLost(told("revoked")),
	}
	if instance := settings["group.instance.id"]; instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		say("failed %s", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		readAndCommit(ctx, client)
	}
	client.CloseAllowingRebalance()
	say("left")
}
