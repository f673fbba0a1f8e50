# A container of podman. The operator turns the driver on: plugin "podman" { config { enabled = true } } in the
# agent's configuration, and `systemctl enable --now podman.socket`. The image is pulled where it is not on the node;
# without a registry it is made by   tar -C / -cf box.tar bin/busybox && podman import box.tar docker.io/library/busybox:1
job "podman" {
  type = "service"

  group "podman" {
    task "hello" {
      driver = "podman"

      config {
        image   = "docker.io/library/busybox:1"
        command = "/bin/busybox"
        args = ["sh", "-c", <<-EOS
          echo "hello from $NOMAD_JOB_NAME, allocation $NOMAD_SHORT_ALLOC_ID"
          trap 'echo bye; exit 0' TERM
          while :; do /bin/busybox sleep 1; done
        EOS
        ]
        network_mode = "none"
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
