# A real service on a port that the scheduler picks: redis-cli -p PORT PING answers PONG.
variable "count" {
  type    = number
  default = 1
}

job "redis" {
  group "cache" {
    count = var.count

    network {
      port "db" {}
    }

    restart {
      attempts = 3
      interval = "5m"
      delay    = "1s"
      mode     = "fail"
    }

    task "redis" {
      driver = "exec"

      config {
        command = "/usr/bin/redis-server"
        args = [
          "--port", "${NOMAD_PORT_db}",
          "--bind", "127.0.0.1",
          "--dir", "/local",
          "--save", "",
          "--daemonize", "no",
        ]
      }

      env {
        CACHE_ADDR = "${NOMAD_ADDR_db}"
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
