# A virtual machine in the sandbox of exec. Its image is 512 bytes: a boot sector that greets on the serial line,
# which is the task's log, and waits for the power button, which `paddock job stop` presses. A job of yours would
# name the disk image of a system: image_path = "local/debian.qcow2", with port_map for what it offers.
job "qemu" {
  type = "service"

  group "qemu" {
    network {
      port "ssh" {}
    }

    task "image" {
      driver = "exec"

      lifecycle {
        hook    = "prestart"
        sidecar = false
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOS
          base64 -d >/alloc/data/boot.img <<'IMAGE'
          6gV8AAAxwI7YjtC8AHz6vk186CAAugIGuAAB77oABu32xAF0975dfOgKALoEBrgAIO/06/2shMB0
          EojEuv0D7KggdPuI4Lr4A+7r6cNtYWNoaW5lIGlzIHVwDQoAYnV0dG9uIHdhcyBwcmVzc2VkDQoA
          IMAGE
          truncate -s 510 /alloc/data/boot.img
          printf '\125\252' >>/alloc/data/boot.img
        EOS
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }

    task "machine" {
      driver = "qemu"

      config {
        image_path        = "/alloc/data/boot.img"
        graceful_shutdown = true

        port_map {
          ssh = 22
        }
      }

      kill_timeout = "30s"

      resources {
        cpu    = 500
        memory = 128
      }
    }
  }
}
