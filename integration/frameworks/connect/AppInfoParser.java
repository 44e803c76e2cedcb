package org.apache.kafka.common.utils;

/** The newest connectors for files are those of Kafka 4.3, which ask this class; in 4.4 it has moved. */
public final class AppInfoParser {
    private AppInfoParser() {}

    public static String getVersion() {
        return org.apache.kafka.common.utils.internals.AppInfoParser.getVersion();
    }
}
