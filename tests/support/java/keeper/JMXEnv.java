package org.apache.zookeeper.test;

import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/** Stands before the class of this name of ZooKeeper's tests: a server in Python has no beans to look at. */
public class JMXEnv {

    public static void setUp() {
    }

    public static void tearDown() {
    }

    public static MBeanServerConnection conn() {
        return ManagementFactory.getPlatformMBeanServer();
    }

    public static Set<ObjectName> ensureAll(String... names) {
        return new HashSet<>();
    }

    public static Set<ObjectName> ensureOnly(String... names) {
        return new HashSet<>();
    }

    public static void ensureNone(String... names) {
    }

    public static void dump() {
    }

    public static Set<ObjectName> ensureParent(String... names) {
        return new HashSet<>();
    }

    public static Object ensureBeanAttribute(String name, String attribute) {
        throw new UnsupportedOperationException("a server in Python has no beans");
    }

    public static List<ObjectName> getServerBeans() {
        return Collections.emptyList();
    }

    public static ObjectName getServerBean() {
        throw new UnsupportedOperationException("a server in Python has no beans");
    }
}
