#include "cli/shared/remote_import.h"

#include <utility>

#include "cli/shared/daemon_call.h"
#include "daemon_api/control_messages.h"
#include "publish/gather.h"
#include "publish/import_sources.h"

namespace weft {
namespace {

// Answers what the daemon asks while it imports.
class Conversation {
 public:
  Conversation(const std::vector<SourceFile>& files, const Context& context, Progress& progress)
      : files_(files), context_(context), shown_(progress) {}

  Status answer(const JsonValue& event, const control::SendMore& more) {
    if (event.find("files") != nullptr) return list(event, more);
    if (event.find("open") != nullptr) return open(event, more);
    if (event.find("phase") != nullptr) return shown_.show(event);
    if (const JsonValue* what = event.find("waiting"); what != nullptr && what->text() != nullptr && !context_.quiet)
      context_.note(*what->text());
    return {};
  }

 private:
  Result<std::size_t> number(const JsonValue& event, std::string_view name) const {
    WEFT_TRY(const std::uint64_t index, event.number(name));
    if (index < files_.size()) return static_cast<std::size_t>(index);
    return Error{Errc::invalid, fmt::format("weftd: asked for file {} of {}", index, files_.size())};
  }

  Status list(const JsonValue& event, const control::SendMore& more) const {
    WEFT_TRY(const std::size_t first, number(event, "files"));
    return more(encode_files(files_, first), {});
  }

  // What cannot be opened ends the import, by the daemon's word: it cleans up first.
  Status open(const JsonValue& event, const control::SendMore& more) const {
    WEFT_TRY(const std::size_t index, number(event, "open"));
    auto fd = open_to_read(files_[index].where);
    std::vector<Fd> fds;
    JsonWriter json;
    json.begin_object();
    if (fd.ok())
      fds.push_back(std::move(fd).value());
    else
      json.member("code", control::errc_name(fd.error().code)).member("message", fd.error().message);
    json.end_object();
    return more(json.text(), std::move(fds));
  }

  const std::vector<SourceFile>& files_;
  const Context& context_;
  ShownProgress shown_;
};

}  // namespace

Result<ImportReport> import_through(control::Client& daemon, const Context& context, const ImportOptions& options,
                                    Progress& progress) {
  WEFT_CHECK(check_description(options));
  WEFT_TRY(const auto files, gather_sources(options.paths, context.store_path()));
  Conversation conversation(files, context, progress);
  control::CallOptions call;
  call.on_event = [&](const control::Message& event, const control::SendMore& more) {
    return conversation.answer(event.body, more);
  };
  WEFT_TRY(const control::Answer answer,
           context.ask(daemon, "import", encode_import(options, files.size()), std::move(call)));
  return decode_report(answer.body);
}

}  // namespace weft
