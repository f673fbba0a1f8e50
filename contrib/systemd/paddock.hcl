# SPDX-License-Identifier: Apache-2.0
# One machine that is server and client: copy it to /etc/paddock.d/ (mode 0600 will do: root reads it for the agent).
data_dir  = "/var/lib/paddock"
bind_addr = "127.0.0.1"

server {
  enabled          = true
  bootstrap_expect = 1
}

client {
  enabled = true
  servers = ["127.0.0.1:4647"]
}
