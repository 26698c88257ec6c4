// libcurl for the sources of this folder: owners of its handles, the options of every request, and its errors.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http/client/http_client.h"
#include "weft/result.h"

namespace weft {

template <auto kCleanup>
struct CurlCleanup {
  template <class T>
  void operator()(T* resource) const {
    kCleanup(resource);
  }
};
using CurlHandle = std::unique_ptr<CURL, CurlCleanup<curl_easy_cleanup>>;
using CurlHeaders = std::unique_ptr<curl_slist, CurlCleanup<curl_slist_free_all>>;
using CurlMulti = std::unique_ptr<CURLM, CurlCleanup<curl_multi_cleanup>>;
using CurlUrl = std::unique_ptr<CURLU, CurlCleanup<curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, CurlCleanup<curl_free>>;

void curl_start();  // initializes libcurl once per process; call it before other libcurl functions
// The text of libcurl's last error.
using CurlErrorText = std::array<char, CURL_ERROR_SIZE>;
// Sets the options common to all requests, and empties `why`. Both must outlive the handle.
void curl_prepare(CURL* handle, const HttpOptions& options, CurlErrorText& why);
CurlHeaders curl_headers(std::span<const std::string> headers);  // each is "Name: value"
// Converts a libcurl error. Errc::unreachable if the request was not sent, Errc::timed_out if it was. Errc::permission
// if one side refused the other's certificate: also if the server wants a certificate, and got none.
Error curl_error(CURL* handle, CURLcode code, std::string_view where, const CurlErrorText& why);

// Returns the headers of a JSON request, with the token and `header` unless they are empty.
std::vector<std::string> json_headers(const std::string& token, const std::string& header = {});

}  // namespace weft
