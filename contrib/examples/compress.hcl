# A batch job: makes a file, compresses it with zstd, checks it, exits 0.
job "compress" {
  type = "batch"

  group "compress" {
    task "zstd" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args = ["-euc", <<-EOS
          seq 1 200000 > /local/numbers
          zstd -q -9 /local/numbers -o /local/numbers.zst
          zstd -q -t /local/numbers.zst
          echo "from $(stat -c %s /local/numbers) to $(stat -c %s /local/numbers.zst) bytes"
        EOS
        ]
      }

      resources {
        cpu    = 200
        memory = 64
      }
    }
  }
}
