# Fifty allocations of one group at once.
job "many" {
  group "many" {
    count = 50

    task "sleeper" {
      driver = "exec"

      config {
        command = "/bin/sleep"
        args    = ["1000000"]
      }

      logs {
        max_files     = 1
        max_file_size = 1
      }

      resources {
        cpu    = 10
        memory = 10
      }
    }
  }
}
