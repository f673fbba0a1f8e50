# A service whose password is nowhere in the job: it is a variable, which this task alone may read.
#
#     paddock var put nomad/jobs/password password="$(head -c 18 /dev/urandom | base64)"
#     paddock job run password.hcl
#
# When the variable changes, the file does, and the service is started again with it.
job "password" {
  group "cache" {
    network {
      port "db" {}
    }

    task "redis" {
      driver = "exec"

      config {
        command = "/usr/bin/redis-server"
        args    = ["/secrets/redis.conf"]
      }

      template {
        destination = "secrets/redis.conf"
        perms       = "0600"
        splay       = "0s"
        data        = <<-EOF
          bind 127.0.0.1
          port {{ env "NOMAD_PORT_db" }}
          dir /local
          save ""
          requirepass {{ with nomadVar "nomad/jobs/password" }}{{ .password }}{{ end }}
        EOF
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
