# SPDX-License-Identifier: Apache-2.0
# The configuration of this machine, read by root for the agent: paddock.hcl(5). All files of this
# folder that end in .hcl or .json count, in order of name.
#
# A node of a fleet. Name its servers, then: systemctl enable --now paddock
#
#data_dir = "/var/lib/paddock"
#client {
#  enabled = true
#  servers = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
#}

# One machine that is server and client, for itself alone.
#
#data_dir  = "/var/lib/paddock"
#bind_addr = "127.0.0.1"
#server {
#  enabled          = true
#  bootstrap_expect = 1
#}
#client {
#  enabled = true
#  servers = ["127.0.0.1"]
#}
