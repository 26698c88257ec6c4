#include "fuse/kernel/libfuse_log.h"

#define FUSE_USE_VERSION 314
#include <fuse_log.h>

#include <array>
#include <cstdarg>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

struct LastMessage {
  std::mutex mutex;
  std::string text;  // guarded by mutex
};

LastMessage& last_message() {
  static LastMessage instance;
  return instance;
}

void keep_message(fuse_log_level, const char* format, va_list arguments) {
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  log_info("libfuse: {}", text);
  const std::lock_guard lock(last_message().mutex);
  last_message().text = std::move(text);
}

}  // namespace

void keep_libfuse_messages() {
  fuse_set_log_func(keep_message);
}

std::string last_libfuse_message() {
  const std::lock_guard lock(last_message().mutex);
  return last_message().text;
}

}  // namespace weft
