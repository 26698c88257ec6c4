#include "control/client.h"
#include "daemon_api/control_messages.h"
#include "weft/programs/mount_figures.h"

namespace weft {
namespace {

class ReportsToDaemon final : public MountReports {
 public:
  explicit ReportsToDaemon(std::string socket_path) : link_(std::move(socket_path)) {}

  void report(const MountFigures& figures) override {
    const auto client = link_.client();  // receives and drops the answers to earlier reports
    if (client.ok()) static_cast<void>(control::Client::begin(*client, "mount", encode_fields(figures)));
  }

 private:
  control::Link link_;
};

}  // namespace

std::unique_ptr<MountReports> make_mount_reports(const std::string& store_path) {
  return std::make_unique<ReportsToDaemon>(store_path + "/" + std::string(control::kSocketName));
}

}  // namespace weft
