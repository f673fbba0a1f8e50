# Three instances of a small web server under one name, each with a check. A change replaces one
# after the other, and waits until the check of the new one passes.
#   paddock job run contrib/examples/web.hcl
#   paddock service info web
job "web" {
  group "web" {
    count = 3

    network {
      port "http" {}
    }

    update {
      max_parallel     = 1
      min_healthy_time = "2s"
      healthy_deadline = "1m"
      auto_revert      = true
    }

    service {
      name     = "web"
      port     = "http"
      provider = "nomad"
      tags     = ["version-1"]

      check {
        type     = "http"
        path     = "/"
        interval = "2s"
        timeout  = "1s"

        check_restart {
          limit = 3
          grace = "5s"
        }
      }
    }

    task "server" {
      driver = "exec"

      config {
        command = "/usr/bin/python3"
        args    = ["-m", "http.server", "--directory", "/local", "${NOMAD_PORT_http}"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
