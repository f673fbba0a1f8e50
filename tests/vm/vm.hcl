# The test machine: server and client in one.
data_dir  = "/var/lib/paddock"
bind_addr = "127.0.0.1"
log_level = "DEBUG"

server {
  enabled          = true
  bootstrap_expect = 1
}

client {
  enabled = true
  servers = ["127.0.0.1:4647"]
}

isolation {
  pids_max       = 64
  swap_max       = 64
  hugetlb_max    = 8
  memory_min_max = 16

  apparmor_allowed = ["paddock-task-vm", "paddock-task-none"]
}

telemetry {
  prometheus_metrics         = true
  publish_allocation_metrics = true
}
