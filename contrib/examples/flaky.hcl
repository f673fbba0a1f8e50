# Fails twice, then runs: the restart policy at work.
job "flaky" {
  group "flaky" {
    restart {
      attempts = 3
      interval = "1m"
      delay    = "100ms"
      mode     = "fail"
    }

    task "flaky" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOS
          n=$(cat /local/tries 2>/dev/null || echo 0)
          echo $((n + 1)) > /local/tries
          echo "try $((n + 1))"
          [ "$n" -ge 2 ] || exit 7
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
