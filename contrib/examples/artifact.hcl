# A file from the network, checked and put into the task's directory before it starts. Serve one first:
#   printf 'hello\n' >/tmp/hello.txt && python3 -m http.server -d /tmp -b 127.0.0.1 8000
# An agent lets artifacts come from its own host when its operator says so:
#   client { artifact { policy { allow = ["127.0.0.1"] } } }, a line for each bracket
variable "source" {
  type    = string
  default = "http://127.0.0.1:8000/hello.txt"
}

job "artifact" {
  type = "batch"

  group "g" {
    task "show" {
      driver = "exec"

      artifact {
        source      = var.source
        destination = "local/in"

        options {
          checksum = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        }
      }

      config {
        command = "/bin/cat"
        args    = ["local/in/hello.txt"]
      }
    }
  }
}
