# One of three servers on one machine: 127.0.0.3. See paddock-cluster(7).
name      = "server3"
bind_addr = "127.0.0.3"

server {
  enabled          = true
  bootstrap_expect = 3

  server_join {
    retry_join = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
  }
}
