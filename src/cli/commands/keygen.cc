#include <fcntl.h>

#include <filesystem>
#include <span>
#include <string>

#include "cli/commands/commands.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr CommandInfo kKeygenInfo = {
    .name = "keygen",
    .summary = "make the key of a cluster",
    .description =
        "Writes a new random key to FILE, which only its owner can read and write. FILE\n"
        "must not exist. Copy it to each node of the cluster, for the setting key_file of\n"
        "weft.conf. Without FILE, keygen prints the key.\n",
    .examples =
        "weft keygen /etc/weft/cluster.key\n"
        "weft keygen /etc/weft/cluster.key.next\n",
};

constexpr std::size_t kKeyBytes = 32;

Status fill(int file, const std::string& path, const std::string& key) {
  WEFT_CHECK(write_exact(file, 0, std::as_bytes(std::span(key)), path));
  WEFT_CHECK(sync_file(file, path));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return sync_directory(parent.empty() ? "." : parent);
}

// Leaves no file after an error.
Status write_key(const std::string& path, const std::string& key) {
  WEFT_TRY(const Fd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  const Status filled = fill(file.get(), path, key);
  if (!filled.ok()) static_cast<void>(remove_file(path));
  return filled;
}

class KeygenCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("FILE", file_, OptionSet::Need::optional, "the file to make");
  }

  Result<int> run(Context& context) override {
    const std::string key = random_hex(kKeyBytes) + "\n";
    if (file_.empty()) {
      context.print("{}", key);
      return kExitDone;
    }
    WEFT_CHECK(write_key(file_, key));
    return kExitDone;
  }

 private:
  std::string file_;
};

}  // namespace

constinit const CommandEntry kKeygenCommand = {kKeygenInfo, make<KeygenCommand>};

}  // namespace weft
