# The first job: a program in a kernel-level sandbox that says who and where it is.
job "hello" {
  type = "service"

  group "hello" {
    count = 1

    task "hello" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOS
          echo "hello from $NOMAD_JOB_NAME, allocation $NOMAD_SHORT_ALLOC_ID"
          echo "host name $(hostname), user $(id -u), capabilities $(grep CapEff /proc/self/status | cut -f2)"
          echo "processes visible: $(ls -d /proc/[0-9]* | wc -l)"
          exec sleep 1000000
        EOS
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
