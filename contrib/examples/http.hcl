# Python's own HTTP server, serving the task's local/ directory.
job "http" {
  group "web" {
    network {
      port "http" {}
    }

    task "server" {
      driver = "exec"

      config {
        command = "/usr/bin/python3"
        args    = ["-m", "http.server", "${NOMAD_PORT_http}", "--bind", "127.0.0.1", "--directory", "/local"]
      }

      env {
        PYTHONUNBUFFERED = "1"
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
