# No node has this class: the evaluation blocks, and says why.
job "impossible" {
  group "never" {
    constraint {
      attribute = "${node.class}"
      value     = "made-of-unobtainium"
    }

    task "never" {
      driver = "exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
