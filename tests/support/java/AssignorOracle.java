import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Kafka's assignors: the method is an assignor's name, the lines of the payload are the cluster and the group. */
public final class AssignorOracle implements Harness.Service {

    @Override
    public byte[] call(String method, byte[] payload) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        for (String line : new String(payload, StandardCharsets.UTF_8).split("\n")) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "node" -> nodes.put(words[1], new Node(Integer.parseInt(words[1]), "h", 1, said(words[2])));
                case "partition" -> {
                    Node[] replicas = Arrays.stream(words[3].split(",")).map(nodes::get).toArray(Node[]::new);
                    int number = Integer.parseInt(words[2]);
                    partitions.add(new PartitionInfo(words[1], number, replicas[0], replicas, replicas));
                }
                case "member" -> {
                    ByteBuffer blob = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
                    Subscription subscription = ConsumerProtocol.deserializeSubscription(blob);
                    subscription.setGroupInstanceId(Optional.ofNullable(said(words[2])));
                    members.put(words[1], subscription);
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        Cluster cluster = new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
        StringBuilder answer = new StringBuilder();
        Map<String, Assignment> shares =
            named(method).assign(cluster, new GroupSubscription(members)).groupAssignment();
        for (Map.Entry<String, Assignment> share : shares.entrySet()) {
            for (TopicPartition partition : share.getValue().partitions()) {
                answer.append(share.getKey()).append(' ').append(partition.topic()).append(' ');
                answer.append(partition.partition()).append('\n');
            }
        }
        return answer.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static String said(String word) {
        return word.equals("-") ? null : word;
    }

    private static ConsumerPartitionAssignor named(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }
}
