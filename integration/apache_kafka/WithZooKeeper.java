// ZooKeeper and one broker of Apache Kafka in one process: releases before 3.3 need ZooKeeper.
//
//     java -cp CLASS_PATH WithZooKeeper.java ZOOKEEPER_PROPERTIES KAFKA_PROPERTIES

import org.apache.zookeeper.server.ServerConfig;
import org.apache.zookeeper.server.ZooKeeperServerMain;

public class WithZooKeeper {
    public static void main(String[] arguments) throws Exception {
        ServerConfig config = new ServerConfig();
        config.parse(arguments[0]);
        Thread thread = new Thread(() -> {
            try {
                new ZooKeeperServerMain().runFromConfig(config);
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        kafka.Kafka.main(new String[] {arguments[1]});
    }
}
