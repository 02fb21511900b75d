package org.apache.zookeeper.server;

import java.io.File;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Stands before ZooKeeper's class of this name on the class path: whoever starts a server gets Ottla's keeper,
 * a process of its own over the same directory, with the server's own settings. Tests of others stay as they
 * are. What looks into the Java server finds an empty one.
 */
public class NIOServerCnxnFactory extends ServerCnxnFactory {

    private static final long START_MS_MAX = 30_000;

    private ServerSocket reserved;
    private InetSocketAddress address;
    private int connectionsPerAddress;
    private Process keeper;

    @Override
    public void configure(InetSocketAddress wanted, int connections, int backlog, boolean isSecure)
            throws IOException {
        if (isSecure) {
            throw new IOException("the keeper has no TLS");
        }
        connectionsPerAddress = connections;
        reserve(wanted.getPort());
    }

    /** Takes the port, as the class whose place this is does, before anything is started. */
    private void reserve(int port) throws IOException {
        ServerSocket socket = new ServerSocket();
        socket.setReuseAddress(true);
        try {
            socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
        } catch (BindException inUse) {
            socket.close();
            throw inUse;
        }
        reserved = socket;
        address = new InetSocketAddress("127.0.0.1", socket.getLocalPort());
    }

    @Override
    public void reconfigure(InetSocketAddress wanted) {
        throw new UnsupportedOperationException("the keeper keeps its address");
    }

    @Override
    public void startup(ZooKeeperServer server, boolean isToStart) throws IOException, InterruptedException {
        setZooKeeperServer(server);
        File output = File.createTempFile("keeper", ".out");
        ProcessBuilder builder = new ProcessBuilder(command(server));
        builder.redirectErrorStream(true).redirectOutput(output);
        release();
        keeper = builder.start();
        Process started = keeper;
        Runtime.getRuntime().addShutdownHook(new Thread(started::destroyForcibly));
        long giveUp = System.currentTimeMillis() + START_MS_MAX;
        while (!Files.readString(output.toPath()).contains("keeper listening on")) {
            if (!started.isAlive() || System.currentTimeMillis() > giveUp) {
                throw new IOException("no keeper: " + Files.readString(output.toPath()));
            }
            Thread.sleep(5);
        }
    }

    private List<String> command(ZooKeeperServer server) {
        File directory = server.getTxnLogFactory().getSnapDir().getParentFile();
        List<String> words = new ArrayList<>(List.of(
            System.getProperty("ottla.python"), "-P", "-m", "ottla.server.keeper",
            "--no-sync", "--data-dir", directory.getAbsolutePath(), "--port", "" + address.getPort(),
            "--connections-per-address", "" + Math.max(0, connectionsPerAddress),
            "--tick-ms", "" + server.getTickTime(),
            "--session-ms-min", "" + server.getMinSessionTimeout(),
            "--session-ms-max", "" + server.getMaxSessionTimeout(),
            "--words", System.getProperty("zookeeper.4lw.commands.whitelist", "srvr"),
            "--container-check-ms", System.getProperty("znode.container.checkIntervalMs", "60000")));
        String superDigest = System.getProperty("zookeeper.DigestAuthenticationProvider.superDigest");
        if (superDigest != null) {
            words.addAll(List.of("--super-digest", superDigest));
        }
        return words;
    }

    private void release() {
        try {
            if (reserved != null) {
                reserved.close();
            }
        } catch (IOException ignored) {
            // it is gone either way
        }
        reserved = null;
    }

    @Override
    public void shutdown() {
        release();
        if (keeper == null) {
            return;
        }
        keeper.destroy();
        try {
            if (!keeper.waitFor(20, TimeUnit.SECONDS)) {
                keeper.destroyForcibly().waitFor();
            }
        } catch (InterruptedException interrupted) {
            keeper.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        if (zkServer != null) {
            zkServer.shutdown();
        }
    }

    @Override
    public void join() throws InterruptedException {
        if (keeper != null) {
            keeper.waitFor();
        }
    }

    @Override
    public void start() {
        // startup has done it
    }

    @Override
    public int getLocalPort() {
        return address.getPort();
    }

    @Override
    public InetSocketAddress getLocalAddress() {
        return address;
    }

    @Override
    public Iterable<ServerCnxn> getConnections() {
        return Collections.emptyList();
    }

    @Override
    public int getMaxClientCnxnsPerHost() {
        return connectionsPerAddress;
    }

    @Override
    public void setMaxClientCnxnsPerHost(int connections) {
        connectionsPerAddress = connections;
    }

    @Override
    public int getSocketListenBacklog() {
        return -1;
    }

    @Override
    public void closeAll(ServerCnxn.DisconnectReason reason) {
        throw new UnsupportedOperationException("the keeper's connections are not this process's");
    }

    @Override
    public void resetAllConnectionStats() {
        throw new UnsupportedOperationException("the keeper's connections are not this process's");
    }

    @Override
    public Iterable<Map<String, Object>> getAllConnectionInfo(boolean isBrief) {
        return Collections.emptyList();
    }
}
