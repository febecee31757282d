# Formula of Knapper's own tap. `scripts/version --formula dist` prints it with the hashes of a release.
class Knapper < Formula
  desc "Search, question and edit a Markdown vault, safely"
  homepage "https://github.com/knapper/knapper"
  url "https://github.com/knapper/knapper/releases/download/v0.1.0/knapper-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "python@3.13"

  # The wheel of the same release: what it holds was built, and needs no compiler here.
  resource "wheel" do
    url "https://github.com/knapper/knapper/releases/download/v0.1.0/knapper-0.1.0-py3-none-any.whl", using: :nounzip
    sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  end

  def install
    system "python3.13", "-m", "venv", libexec
    pip = [libexec/"bin/python", "-m", "pip", "--disable-pip-version-check", "install"]
    # Every file is checked against the hashes of the release's lock.
    system(*pip, "--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", "packaging/agents.lock")
    resource("wheel").stage { system(*pip, "--no-deps", "--no-index", Dir["*.whl"].first) }
    bin.install_symlink libexec/"bin/knap"
  end

  service do
    run [opt_bin/"knap", "serve"]
    keep_alive true
    log_path var/"log/knapper.log"
    error_log_path var/"log/knapper.log"
  end

  test do
    (testpath/"vault/Fence.md").write "# Fence\n\nThe fence is green.\n"
    ENV["KNAP_STATE_DIR"] = testpath/"state"
    ENV["KNAP_CONFIG"] = testpath/"config.toml"
    assert_match version.to_s, shell_output("#{bin}/knap --version")
    assert_match "Fence.md", shell_output("#{bin}/knap --vault #{testpath}/vault search fence")
  end
end
