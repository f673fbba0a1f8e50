# Two tasks that share no secret: "caller" proves who it is by an identity for "door", which checks
# it with the public keys of the region. They are fetched over the socket of the task's own API.
#
# Python's standard library is all it takes, so that each step can be read; real services use a
# library for JSON Web Tokens, and paddock-identity(7) says what that is to be told.
job "proof" {
  group "g" {
    network {
      port "door" {}
    }

    task "door" {
      driver = "exec"

      identity {
        env = true # to ask the API
      }

      config {
        command = "/usr/bin/python3"
        args    = ["/local/door.py"]
      }

      template {
        destination = "local/door.py"
        data        = <<-EOF
          import base64, hashlib, http.client, http.server, json, os, socket, time

          def bytes_of(s):
              return base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))

          class Api(http.client.HTTPConnection):
              def connect(self):
                  self.sock = socket.socket(socket.AF_UNIX)
                  self.sock.connect(os.environ["NOMAD_SECRETS_DIR"] + "/api.sock")

          def keys():
              api = Api("localhost")
              api.request("GET", "/.well-known/jwks.json", headers={"Authorization": "Bearer " + os.environ["NOMAD_TOKEN"]})
              return {k["kid"]: k for k in json.load(api.getresponse())["keys"]}

          def who(token):
              head, body, sig = token.split(".")
              h, claims = json.loads(bytes_of(head)), json.loads(bytes_of(body))
              assert h["alg"] == "RS256", "another algorithm"
              key = keys()[h["kid"]]
              n, e = (int.from_bytes(bytes_of(key[k]), "big") for k in "ne")
              size = (n.bit_length() + 7) // 8
              digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(f"{head}.{body}".encode()).digest()
              want = b"\0\1" + b"\xff" * (size - 3 - len(digest)) + b"\0" + digest  # RFC 8017, 9.2
              assert pow(int.from_bytes(bytes_of(sig), "big"), e, n).to_bytes(size, "big") == want, "another signature"
              assert claims["aud"] == "door" and claims["nbf"] <= time.time() + 60 and claims["exp"] > time.time(), "not for us, or over"
              return claims["sub"]

          class Door(http.server.BaseHTTPRequestHandler):
              def do_GET(self):
                  try:
                      status, text = 200, "welcome, " + who(self.headers["Authorization"].removeprefix("Bearer "))
                  except Exception as e:
                      status, text = 401, f"who is there? ({e!r})"
                  self.send_response(status)
                  self.end_headers()
                  self.wfile.write((text + "\n").encode())

          http.server.HTTPServer(("127.0.0.1", int(os.environ["NOMAD_PORT_door"])), Door).serve_forever()
        EOF
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }

    task "caller" {
      driver = "exec"

      identity {
        name = "door"
        aud  = ["door"]
        file = true
        ttl  = "1h"
      }

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOF
          until curl -s -H "Authorization: Bearer $(cat /secrets/nomad_door.jwt)" http://$NOMAD_ADDR_door/; do sleep 1; done
          curl -s http://$NOMAD_ADDR_door/
          sleep infinity
        EOF
        ]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
