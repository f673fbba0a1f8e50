# A Java program in the sandbox of exec. It comes from its source, which a task before it leaves in the
# directory that the tasks of an allocation share; a job of yours would name its jar: jar_path = "local/app.jar".
job "java" {
  type = "service"

  group "java" {
    task "source" {
      driver = "exec"

      lifecycle {
        hook    = "prestart"
        sidecar = false
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOS
          cat >/alloc/data/Hello.java <<'JAVA'
          public class Hello {
              public static void main(String[] args) throws Exception {
                  System.out.println("hello from Java " + System.getProperty("java.version")
                      + ", heap of at most " + (Runtime.getRuntime().maxMemory() >> 20) + " MiB, for " + args[0]);
                  Thread.sleep(Long.MAX_VALUE);
              }
          }
          JAVA
        EOS
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }

    task "java" {
      driver = "java"

      config {
        class       = "/alloc/data/Hello.java"
        jvm_options = ["-Xmx64m", "-XX:+UseSerialGC"]
        args        = ["${NOMAD_JOB_NAME}"]
      }

      resources {
        cpu    = 100
        memory = 256
      }
    }
  }
}
