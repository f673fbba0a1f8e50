# A container. The operator turns the driver on: plugin "docker" { config { enabled = true } } in the agent's
# configuration. The image is pulled where it is not on the node; without a registry it is made by
#   tar -C / -c bin/busybox | docker import - busybox:1
job "docker" {
  type = "service"

  group "docker" {
    task "hello" {
      driver = "docker"

      config {
        image   = "busybox:1"
        command = "/bin/busybox"
        args = ["sh", "-c", <<-EOS
          echo "hello from $NOMAD_JOB_NAME, allocation $NOMAD_SHORT_ALLOC_ID"
          trap 'echo bye; exit 0' TERM
          while :; do /bin/busybox sleep 1; done
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
