#!/bin/bash
touch draft
